"""Forty concurrent turns of one session. As a script it is another process, which closes nothing when it is done."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory

TURNS = 40


async def forty_turns(path: Path, name: str) -> Runner:
    """Hold the turns on the memory at `path`, and leave everything open."""
    model = ScriptedLlm(script=[f"answer {n} of {name}" for n in range(TURNS)])
    plugin = MemoryPlugin(recall=False)
    runner = Runner(
        app=App(name="demo", root_agent=LlmAgent(name="helper", model=model), plugins=[plugin]),
        session_service=InMemorySessionService(),
        memory_service=MemoryService(Memory(path, embedder=None), owns_memory=True),
        auto_create_session=True,
    )
    await runner.session_service.create_session(app_name="demo", user_id="ann", session_id="s")
    turns = (ask(runner, f"turn {n} of {name}", user_id="ann", session_id="s") for n in range(TURNS))
    await asyncio.gather(*turns)
    await plugin.flush()
    return runner


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    asyncio.run(forty_turns(Path(sys.argv[1]), "two"))
