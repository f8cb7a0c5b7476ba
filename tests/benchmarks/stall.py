"""How long an event loop is kept from its own work while memories are written and searched.

    python tests/benchmarks/stall.py [SECONDS]

A task of the caller's loop wakes every 2 ms and notes how late it is: first beside other work that leaves the loop
alone (the machine's own noise), then beside 8 writers and 4 searchers of an owner of 2,000.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import GivenVectors, drafts, questions
from memory_core import BoundMemory, Draft, Memory

EVERY = 0.002


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


def told(what: str, late: list[float]) -> str:
    return (
        f"{what}: p50 {late[len(late) // 2]:.2f}, p99 {late[int(0.99 * len(late))]:.2f}, worst {late[-1]:.1f} ms late"
    )


async def main(seconds: float) -> None:
    print(told("nothing else on the loop", await lateness(seconds)))
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "stall.db", embedder=GivenVectors()) as memory:
            handle = memory.bind(app="bench", user="ann")
            await handle.add_many(drafts(2_000, 1))
            await handle.search("warm up")
            texts, asked = drafts(400, 2), questions(100, 2)
            busy = [asyncio.create_task(write(handle, texts[number::8])) for number in range(8)]
            busy += [asyncio.create_task(search(handle, asked[number::4])) for number in range(4)]
            print(told("8 writers and 4 searchers", await lateness(seconds)))
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0))
