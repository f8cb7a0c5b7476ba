"""A prompt has unasked of the memory: nothing, what is right, or what a follow-up is about."""

from __future__ import annotations

import pytest

from memory_core import Draft, Memory
from tests.adapters.drivers.driver import Setting
from tests.adapters.drivers.every import each
from tests.adapters.matrix.conftest import Drive
from tests.recall.blocks import bodies

FACTS = ("The router has the password kolibri-9", "The boiler code is 4711", "Rosa is allergic to hazelnuts")


@pytest.mark.parametrize("name", each())
async def test_a_prompt_is_silent_right_and_follows_up(drive: Drive, name: str) -> None:
    async with Memory(":memory:") as memory:  # with the default model, which knows what small talk is
        ann = memory.bind(app="demo", user="ann")
        await ann.add_many([Draft(fact) for fact in FACTS])
        async with drive(name, Setting(ann, lambda _: "Go on.")) as model:

            async def pushed(said: str) -> str:
                assert await model.say(said) == "Go on."
                return "\n".join(bodies(model.prompt()))

            assert not await pushed("Good morning!")
            right = await pushed("The router needs a restart.")
            assert "kolibri-9" in right
            assert "hazelnuts" not in right
            assert "4711" not in right
            follow_up = await pushed("What do I need for it?")
            # A hook shows a memory once in a conversation, in which it stays.
            assert ("kolibri-9" in follow_up) == (name != "hook")
            assert not await pushed("Thanks a lot!")
