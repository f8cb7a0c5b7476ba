"""Forty concurrent turns of one session. As a script it is another process, which neither flushes nor closes anything,
and ends with one more turn, on a memory of its own that nobody has opened yet."""

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
from memory_core.conversation import limits

TURNS = 40


async def turns(path: Path, name: str, count: int = TURNS) -> Runner:
    """Hold the turns on the memory at `path`, and leave everything open."""
    model = ScriptedLlm(script=[f"answer {n} of {name}" for n in range(count)])
    runner = Runner(
        app=App(name="demo", root_agent=LlmAgent(name="helper", model=model), plugins=[MemoryPlugin(recall=False)]),
        session_service=InMemorySessionService(),
        memory_service=MemoryService(Memory(path, embedder=None), owns_memory=True),
        auto_create_session=True,
    )
    await runner.session_service.create_session(app_name="demo", user_id="ann", session_id="s")
    said = (ask(runner, f"turn {n} of {name}", user_id="ann", session_id="s") for n in range(count))
    await asyncio.gather(*said)
    return runner


if __name__ == "__main__":
    vars(limits)["EXIT_SECONDS"] = 60.0  # a busy machine may take longer than an exiting script should
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    asyncio.run(turns(Path(sys.argv[1]), "two"))
    asyncio.run(turns(Path(sys.argv[2]), "last", 1))
