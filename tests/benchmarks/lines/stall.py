"""The time for which an event loop is kept from its own work while memories are written and searched.

A task of the caller's loop wakes every 2 ms and notes how late it is: beside nothing else (the machine's own noise),
then beside 8 writers and 4 searchers of an owner of 2,000 that never pause.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import GivenVectors, drafts, questions
from lines.figure import absolute
from lines.result import Measured
from memory_core import BoundMemory, Draft, Memory

EVERY = 0.002
ROUNDS, SECONDS = 5, 5.0
MOST = 3.0


async def lateness(seconds: float) -> list[float]:
    """Milliseconds by which each wake-up was late, sorted."""
    late: list[float] = []
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        await asyncio.sleep(EVERY)
        late.append(1e3 * (time.perf_counter() - now - EVERY))
    return sorted(late)


async def write(handle: BoundMemory, texts: Sequence[Draft]) -> None:
    for draft in itertools.cycle(texts):
        await handle.add(draft)


async def search(handle: BoundMemory, asked: Sequence[str]) -> None:
    for question in itertools.cycle(asked):
        await handle.search(question)


async def beside_work(handle: BoundMemory, seconds: float) -> list[float]:
    """The lateness while 8 writers and 4 searchers are at work."""
    texts, asked = drafts(400, 2), questions(100, 2)
    busy = [asyncio.create_task(write(handle, texts[number::8])) for number in range(8)]
    busy += [asyncio.create_task(search(handle, asked[number::4])) for number in range(4)]
    late = await lateness(seconds)
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    return late


async def in_rounds(size: int, rounds: int, seconds: float) -> Measured:
    alone, beside = [], []
    for _ in range(rounds):
        alone.append(await lateness(seconds))
        with tempfile.TemporaryDirectory() as folder:
            async with Memory(Path(folder) / "stall.db", embedder=GivenVectors()) as memory:
                handle = memory.bind(app="bench", user="ann")
                await handle.add_many(drafts(size, 1))
                await handle.search("warm up")
                beside.append(await beside_work(handle, seconds))
    figure = absolute(
        "p99",
        "ms",
        [late[int(0.99 * len(late))] for late in beside],
        beside="nothing else on the loop",
        other=[late[int(0.99 * len(late))] for late in alone],
        most=MOST,
    )
    return Measured([figure])


def measure(*, short: bool) -> Measured:
    return asyncio.run(in_rounds(100, 1, 0.1) if short else in_rounds(2_000, ROUNDS, SECONDS))
