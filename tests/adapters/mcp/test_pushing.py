"""What the hook puts before a prompt unasked: nothing, what is right, or what a follow-up is about."""

from __future__ import annotations

import json

from memory_core import Draft, Memory
from memory_mcp import run_hook


async def test_a_prompt_is_silent_right_and_follows_up() -> None:
    async with Memory(":memory:") as memory:  # with the default model, which knows what small talk is
        ann = memory.bind(user="ann")
        facts = ("The router has the password kolibri-9", "The boiler code is 4711", "Rosa is allergic to hazelnuts")
        await ann.add_many([Draft(fact) for fact in facts])

        async def pushed(prompt: str) -> str:
            shown = await run_hook(ann, json.dumps({"session_id": "s", "prompt": prompt}))
            said = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "Go on."}]
            await run_hook(ann, json.dumps({"session_id": "s", "messages": said}))
            return shown

        assert await pushed("Good morning!") == ""
        right = await pushed("The router needs a restart.")
        assert "kolibri-9" in right
        assert "hazelnuts" not in right
        assert await pushed("What do I need for it?") == ""  # the conversation shows it already
        await run_hook(ann, json.dumps({"session_id": "s", "hook_event_name": "SessionStart", "source": "compact"}))
        assert "kolibri-9" in await pushed("What do I need for it?")
        assert await pushed("Thanks a lot!") == ""
