"""What an agent's prompt has of the memory unasked, over XMPP: nothing, what is right, or what a follow-up is about."""

from __future__ import annotations

from collections.abc import Callable

from memory_core import Draft, Memory
from memory_spade import MemoryLLMAgent
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import ScriptedProvider
from tests.adapters.spade.conftest import Start
from tests.adapters.spade.saying import ON_ONE_SERVER

Jid = Callable[[str], str]


@ON_ONE_SERVER
async def test_a_prompt_is_silent_right_and_follows_up(start: Start, jid: Jid) -> None:
    async with Memory(":memory:") as memory:  # with the default model, which knows what small talk is
        desk = memory.bind(app="desk", user="ann")
        facts = ("The router has the password kolibri-9", "The boiler code is 4711", "Rosa is allergic to hazelnuts")
        await desk.add_many([Draft(fact) for fact in facts])
        provider = ScriptedProvider(lambda request: "Go on.")
        bot, ann = MemoryLLMAgent(jid("bot"), "secret", provider, memory=desk), Peer(jid("ann"))
        await start(bot)
        await start(ann)

        async def pushed(said: str) -> str:
            await ann.ask(str(bot.jid), said, thread="monday")
            return provider.requests[-1].system

        assert not await pushed("Good morning!")
        right = await pushed("The router needs a restart.")
        assert "kolibri-9" in right
        assert "hazelnuts" not in right
        assert "kolibri-9" in await pushed("What do I need for it?")
        assert not await pushed("Thanks a lot!")
