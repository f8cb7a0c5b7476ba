"""Many agents share one memory for long: no wrong answer, and neither threads nor tasks grow, nor memory but for its
records."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from spade.agent import Agent

from memory_core import Memory, Where
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.testing.peer import Peer
from tests.adapters.spade.saying import ON_ONE_SERVER, Jid, Start

RECORD_BYTES = 1_500
"""The most bytes that an owner's index has in memory for each record."""


class Keeper(MemoryBehaviour):
    """Keeps the code of each thread, and tells the latest when it is asked."""

    async def run(self) -> None:
        heard = await self.receive(timeout=10)
        if heard is None:
            return
        answer = heard.make_reply()
        answer.body = "kept"
        if heard.body == "which code?":
            where = Where(session=heard.thread, author=str(heard.sender.bare), keywords=["code"])
            page = await self.memory.list(where=where, limit=2)
            answer.body = page.records[1].text  # the first one is the question
        await self.send(answer)


class Guard(MemoryMixin, Agent):
    async def setup(self) -> None:
        self.add_behaviour(Keeper())


def resident_megabytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4 // 1024


async def soak(
    start: Start, jid: Jid, memory: Memory, *, agents: int, seconds: float, rounds: int
) -> list[tuple[int, int, int]]:
    """The numbers of threads, of tasks and of megabytes after each round."""
    team, ann = memory.bind(app="mas", user="team"), Peer(jid("ann"))
    guards = [Guard(jid(f"guard{number}x"), "pw", memory=team) for number in range(agents)]
    for agent in (ann, *guards):
        await start(agent)
    end, done, sizes = time.monotonic() + seconds, 0, list[tuple[int, int, int]]()

    async def one(number: int) -> None:
        guard, thread = str(guards[number].jid), f"t{number}"
        metadata = {"performative": "inform"}
        code = f"the code is {number}-{done}"
        assert (await ann.ask(guard, code, thread=thread, metadata=metadata)).body == "kept"
        assert (await ann.ask(guard, "which code?", thread=thread, metadata=metadata)).body == code

    while done < rounds or time.monotonic() < end:
        await asyncio.gather(*(one(number) for number in range(agents)))
        done += 1
        sizes.append((threading.active_count(), len(asyncio.all_tasks()), resident_megabytes()))
    assert (await team.stats()).records == 4 * agents * done
    return sizes


@ON_ONE_SERVER
async def test_agents_that_share_a_memory_answer_rightly(start: Start, jid: Jid, memory: Memory) -> None:
    await soak(start, jid, memory, agents=8, seconds=0, rounds=4)


@pytest.mark.torture
@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
async def test_two_hundred_agents_answer_rightly_for_ten_minutes(start: Start, jid: Jid, memory: Memory) -> None:
    agents = 200
    sizes = await soak(start, jid, memory, agents=agents, seconds=600, rounds=4)
    half = max(1, len(sizes) // 2 - 1)
    megabytes = 20 + 4 * agents * (len(sizes) - half) * RECORD_BYTES // 1_000_000
    for before, after, grown in zip(sizes[half], sizes[-1], (2, 20, megabytes), strict=True):
        assert after <= before + grown, sizes


@pytest.mark.torture
@pytest.mark.parametrize("server", ["pyjabber"], indirect=True)
async def test_an_agent_that_is_silent_for_longer_than_a_minute_stays_connected(
    start: Start, jid: Jid, memory: Memory
) -> None:
    guard, ann = Guard(jid("guard"), "pw", memory=memory), Peer(jid("ann"))
    await start(guard, ann)
    await asyncio.sleep(75)
    answer = await ann.ask(jid("guard"), "the code is 1", metadata={"performative": "inform"})
    assert answer.body == "kept"
