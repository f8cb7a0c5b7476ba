"""An ADK agent recalls in one conversation what a user said in another, once automatically and once with a tool.

python examples/adk_two_sessions.py

The model is scripted, so this runs without a key: it answers from what its prompt says about tea. Replace it with a
model's name, such as "gemini-flash-latest".
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt


def what_i_know(request: LlmRequest) -> str:
    """Answer with what the prompt says about tea."""
    known = re.search(r"My favourite tea is [^.]*", prompt(request))
    return f"You told me: {known[0]}." if known else "I do not know."


async def main() -> None:
    """State a fact, then ask about it twice."""
    search = ("search_past_conversations", {"query": "favourite tea", "max_results": 3})
    model = ScriptedLlm(script=["Noted.", what_i_know, search, what_i_know])
    with tempfile.TemporaryDirectory() as folder:
        service = MemoryService(Path(folder) / "memory.db")
        plugin = MemoryPlugin()
        agent = LlmAgent(name="helper", model=model, tools=[MemoryToolset(service)])
        runner = Runner(
            app=App(name="demo", root_agent=agent, plugins=[plugin]),
            session_service=InMemorySessionService(),
            memory_service=service,
            auto_create_session=True,
        )
        async with runner:
            for session, text in (
                ("monday", "My favourite tea is jasmine, from the shop on Mill Road."),
                ("tuesday", "Which tea do I like best?"),
                ("friday", "Please look up where I buy tea."),
            ):
                print(f"{session:>8}  ann:    {text}")
                print(f"{'':8}  helper: {await ask(runner, text, user_id='ann', session_id=session)}")
                await plugin.flush()  # capture runs in the background, faster than a person types
        await service.close()


if __name__ == "__main__":
    asyncio.run(main())
