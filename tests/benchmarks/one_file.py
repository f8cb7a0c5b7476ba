"""How far one file goes: many owners, one large owner with and without vectors, and writers and readers at once.

    python tests/benchmarks/one_file.py [owners OWNERS] [words RECORDS] [vectors RECORDS] [busy SECONDS]

Vectors are random, so no model is measured. All times but those of the last line are milliseconds of CPU, which other
programs on the machine change little.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

import numpy as np

from common import RememberedVectors, drafts, percentiles, questions, time_each
from memory_core import Embedder, Memory

AT_ONCE: Final = 1_000
ASKED: Final = 60


def resident() -> int:
    """The memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096 // 1_000_000


async def filled(memory: Memory, owners: int, each: int) -> None:
    """Write so many records for each owner."""
    texts = drafts(min(each, 20_000), 1)
    for number in range(owners):
        handle = memory.bind(app="bench", user=f"user {number}")
        for start in range(0, each, AT_ONCE):
            await handle.add_many([texts[n % len(texts)] for n in range(start, min(start + AT_ONCE, each))])


async def cpu(work: Awaitable[object]) -> float:
    """The milliseconds of CPU time that this process takes meanwhile."""
    began = time.process_time()
    await work
    return (time.process_time() - began) * 1e3


async def measured(name: str, owners: int, each: int, embedder: Embedder | None) -> None:
    """Print the row of a file with so many owners and records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        async with Memory(path, embedder=embedder) as memory:
            writing = await cpu(filled(memory, owners, each))
        size = path.stat().st_size / 1e6
        memory = Memory(path, embedder=embedder)
        opening = await cpu(memory.open())
        handle = memory.bind(app="bench", user="user 0")
        asked = questions(ASKED + 1, 1)
        first = await cpu(handle.search(asked[0]))
        later = await cpu(time_each(handle.search, asked[1:])) / ASKED
        counting = await cpu(handle.stats())
        listing = await cpu(handle.list(limit=50))
        await memory.close()
    print(
        f"| {name} | {writing / (owners * each):.2f} | {opening:.0f} | {first:.0f} | {later:.1f} | {counting:.0f} | "
        f"{listing:.1f} | {size:,.0f} | {resident()} |",
        flush=True,
    )


async def busy(seconds: float, writers: int = 4, readers: int = 4) -> None:
    """Writers and readers of one process, each with an owner of 1,000 records."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "memory.db", embedder=RememberedVectors()) as memory:
            await filled(memory, writers, 1_000)
            end = time.perf_counter() + seconds
            written, searched, slowest = 0, list[float](), list[float]()

            async def write(number: int) -> None:
                nonlocal written
                handle = memory.bind(app="bench", user=f"user {number}")
                while time.perf_counter() < end:
                    began = time.perf_counter()
                    await handle.add(drafts(1, written)[0])
                    slowest.append(time.perf_counter() - began)
                    written += 1

            async def read(number: int) -> None:
                handle = memory.bind(app="bench", user=f"user {number}")
                asked = questions(ASKED, number)
                while time.perf_counter() < end:
                    searched.extend(await time_each(handle.search, [asked[len(searched) % ASKED]]))

            await asyncio.gather(*map(write, range(writers)), *map(read, range(readers)))
    p50, p95 = percentiles(searched)
    add50, add95 = (float(value) * 1e3 for value in np.percentile(slowest, [50, 95]))
    print(
        f"{writers} writers and {readers} readers, {seconds:g} s: {written / seconds:,.0f} adds a second "
        f"(p50 {add50:.1f}, p95 {add95:.1f} ms), {len(searched) / seconds:,.0f} searches a second "
        f"(p50 {p50:.1f}, p95 {p95:.1f} ms)"
    )


async def main(owners: int, words: int, vectors: int, seconds: float) -> None:
    print("| what | add, a record | open | first search | a search | stats | a page of 50 | file, MB | process, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    await measured(f"{owners:,} owners of 10", owners, 10, None)
    await measured(f"one owner of {words:,}, words only", 1, words, None)
    await measured(f"one owner of {vectors:,}, with vectors", 1, vectors, RememberedVectors())
    await busy(seconds)


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], map(int, sys.argv[2::2]), strict=True))
    asyncio.run(
        main(
            given.get("owners", 2_000), given.get("words", 50_000), given.get("vectors", 20_000), given.get("busy", 20)
        )
    )
