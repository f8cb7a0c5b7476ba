"""An owner function is asked once a message, off the event loop, and may be `async def`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

import pytest
from spade.agent import Agent

from memory_core import Memory, ScopeError
from memory_spade import MemoryBehaviour, MemoryLLMAgent, MemoryMixin
from memory_spade.owners import MAX_PEERS, Owners
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start, message, say, until


class Asked:
    """Counts what it is asked, and on which thread."""

    def __init__(self) -> None:
        self.peers: list[str] = []
        self.on_loop = False

    def plain(self, peer: str) -> str:
        self.peers.append(peer.partition("@")[0].rstrip("0123456789"))
        self.on_loop |= threading.current_thread() is threading.main_thread()
        return f"customer of {peer}"

    async def coroutine(self, peer: str) -> str:
        await asyncio.sleep(0)
        self.peers.append(peer.partition("@")[0].rstrip("0123456789"))
        return f"customer of {peer}"

    def awaitable(self, peer: str) -> Awaitable[str]:
        return self.coroutine(peer)


class Desk(MemoryBehaviour):
    async def run(self) -> None:
        heard = await self.receive(timeout=10)
        if heard is not None:
            recalled = await self.recall(heard)
            answer = heard.make_reply()
            found = await self.memory.search(str(heard.body))
            await (await self.agent.memory_of(heard)).add("noted")
            answer.body = f"{len(found)} found, {len(recalled.hits)} recalled"
            await self.send(answer)


@ON_ONE_SERVER
@pytest.mark.parametrize("form", ["plain", "coroutine", "awaitable"])
async def test_an_owner_function_is_asked_once_a_message_and_never_on_the_event_loop(
    start: Start, jid: Jid, memory: Memory, form: str
) -> None:
    class Office(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(Desk())

    asked = Asked()
    office, ann = Office(jid("office"), "pw", memory=memory, owner=getattr(asked, form)), Peer(jid("ann"))
    await start(office, ann)
    for turn in range(2):
        answer = await ann.ask(jid("office"), "Ann drinks tea", metadata={"performative": "inform"})
        assert answer.body is not None
        assert not answer.body.startswith("0 found")
        assert (asked.peers, asked.on_loop) == (["ann"] * (turn + 1), False)
    assert (await memory.bind(user=f"customer of {jid('ann')}").stats()).records == 6


def use_all(request: Request) -> str | list[ToolCall]:
    if request.results:
        return "\n".join(request.results)
    note = ToolCall("remember_interaction_info", {"information": request.said})
    return [note, ToolCall("store_memory", {"content": request.said, "category": "fact"}), ToolCall("list_memories")]


@ON_ONE_SERVER
@pytest.mark.parametrize("form", ["plain", "coroutine"])
async def test_all_tools_of_a_turn_and_its_prompt_share_one_answer_of_the_owner_function(
    start: Start, jid: Jid, memory: Memory, form: str
) -> None:
    asked = Asked()
    bot = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(use_all), memory=memory, owner=getattr(asked, form))
    ann, bob = Peer(jid("ann")), Peer(jid("bob"))
    await start(bot, ann, bob)
    for peer in (ann, bob, ann):
        answer = await peer.ask(jid("bot"), f"{peer.jid.bare} drinks tea")
        assert "failed" not in str(answer.body)
    assert (asked.peers, asked.on_loop) == (["ann", "bob", "ann"], False)


@pytest.mark.usefixtures("container")
async def test_the_answer_to_an_earlier_message_never_replaces_that_to_a_later_one() -> None:
    answers: list[asyncio.Future[str]] = []

    async def owner(_: str) -> str:
        answers.append(asyncio.get_running_loop().create_future())
        return await answers[-1]

    owners = Owners(owner)
    first = asyncio.create_task(owners.ask("ann"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ScopeError, match="not known yet"):
        owners.user("ann")
    owners.heard("ann")
    second = asyncio.create_task(owners.ask("ann"))
    while len(answers) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    answers[1].set_result("new")
    await second
    answers[0].set_result("old")
    await first
    assert owners.user("ann") == "new"


async def test_no_more_answers_are_kept_than_for_a_thousand_peers() -> None:
    async def owner(peer: str) -> str:
        return peer

    owners = Owners(owner)
    for number in range(MAX_PEERS + 1):
        await owners.ask(str(number))
    assert owners.user(str(MAX_PEERS)) == str(MAX_PEERS)
    with pytest.raises(ScopeError, match="not known yet"):
        owners.user("0")


@ON_ONE_SERVER
async def test_an_asynchronous_owner_function_that_raises_costs_one_message_its_memory(
    start: Start, jid: Jid, memory: Memory
) -> None:
    known: dict[str, str] = {}
    asked = asyncio.Event()

    async def owner(peer: str) -> str:
        asked.set()
        return known[peer]

    class Listener(MemoryMixin, Agent):
        async def setup(self) -> None:
            self.add_behaviour(MemoryBehaviour())

    listener, ann = Listener(jid("bot"), "pw", memory=memory, owner=owner), Agent(jid("ann"), "pw")
    await start(listener, ann)
    await say(ann, message(jid("bot"), "one"))
    await asked.wait()
    with pytest.raises(ScopeError, match="no user for"):
        await listener.memory_of(_from(jid("ann")))
    known[jid("ann")] = "ann"
    await say(ann, message(jid("bot"), "two"))
    await until(memory.bind(user="ann"), 1)
    assert [record.text for record in (await memory.bind(user="ann").list()).records] == ["two"]


def _from(sender: str) -> Any:
    heard = message("bot@localhost", "")
    heard.sender = sender
    return heard
