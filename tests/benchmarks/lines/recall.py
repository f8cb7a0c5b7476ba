"""`recall` beside the search that it contains, end to end, for an owner of 1,000 and one of 10,000; vectors are given.

Both answer each question, in turns and in either order. `recall` counts the first read of each memory on a day, in a
synced write that goes on while the next question is asked; so each question is asked again, when there is nothing to
count any more.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from common import RememberedVectors, questions
from lines.figure import Figure, relative
from lines.filling import fill
from lines.result import Measured
from memory_core import BoundMemory, Memory

ROUNDS, ASKED = 10, 40
MOST = 1.5
CONTAINED = 30
"""Hits of the search in a recall of the default options."""

Times = tuple[list[float], list[float]]
"""Milliseconds: on the clock and of CPU."""


async def time_one(call: Callable[[str], Awaitable[object]], question: str, times: Times) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    await call(question)
    times[0].append(1e3 * (time.perf_counter() - wall))
    times[1].append(1e3 * (time.process_time() - cpu))


async def in_turns(handle: BoundMemory, asked: Sequence[str]) -> tuple[Times, Times]:
    """Of `search` and of `recall`."""
    search: Times = ([], [])
    recall: Times = ([], [])
    for number, question in enumerate(asked):
        turns: list[tuple[Callable[[str], Awaitable[object]], Times]]
        turns = [(partial(handle.search, limit=CONTAINED), search), (handle.recall, recall)]
        for call, times in turns[:: 1 if number % 2 else -1]:
            await time_one(call, question, times)
    return search, recall


async def figures(size: int, rounds: int, asked: int) -> list[Figure]:
    vectors = RememberedVectors()
    first: list[tuple[Times, Times]] = []
    again: list[tuple[Times, Times]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "recall.db", embedder=vectors) as memory:
            handle = memory.bind(app="bench", user="ann")
            await fill(handle, size, seed=1)
            await handle.recall("warm up")
            for number in range(rounds):
                some = questions(asked, number)
                for question in some:
                    vectors.vector(question)  # and is known from here on
                first.append(await in_turns(handle, some))
                again.append(await in_turns(handle, some))
    return [
        relative(
            f"{size:,} records{when}{suffix}",
            "ms",
            [median(recall[clock]) for _, recall in found],
            beside="`search` of 30",
            other=[median(search[clock]) for search, _ in found],
            most=most,
        )
        for when, found in (("", first), (", read today", again))
        for clock, suffix, most in ((0, "", MOST), (1, ", CPU", None))
    ]


def measure(*, short: bool) -> Measured:
    sizes = (100, 200) if short else (1_000, 10_000)
    rounds, asked = (1, 3) if short else (ROUNDS, ASKED)
    return Measured([each for size in sizes for each in asyncio.run(figures(size, rounds, asked))])
