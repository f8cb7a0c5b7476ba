"""What the plugin puts into a prompt unasked: nothing, what is right, or what a follow-up is about."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Draft, Memory
from tests.recall.blocks import has_block


async def test_a_prompt_is_silent_right_and_follows_up() -> None:
    async with Memory(":memory:") as memory:  # with the default model, which knows what small talk is
        ann = memory.bind(app="desk", user="ann")
        facts = ("The router has the password kolibri-9", "The boiler code is 4711", "Rosa is allergic to hazelnuts")
        await ann.add_many([Draft(fact) for fact in facts])
        model = ScriptedLlm(script=["Go on."] * 4)
        app = App(name="desk", root_agent=LlmAgent(name="helper", model=model), plugins=[MemoryPlugin()])
        async with Runner(
            app=app,
            session_service=InMemorySessionService(),
            memory_service=MemoryService(memory),
            auto_create_session=True,
        ) as runner:

            async def pushed(said: str) -> str:
                await ask(runner, said, user_id="ann", session_id="s")
                text = prompt(model.requests[-1])
                return text if has_block(text) else ""

            assert not await pushed("Good morning!")
            right = await pushed("The router needs a restart.")
            assert "kolibri-9" in right
            assert "hazelnuts" not in right
            assert "kolibri-9" in await pushed("What do I need for it?")
            assert not await pushed("Thanks a lot!")
