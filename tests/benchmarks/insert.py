"""Durable single inserts by 1, 8 and 32 concurrent writers, beside raw sqlite3 with the same tables and batches.

    python tests/benchmarks/insert.py [COUNT]

Both write with `synchronous=FULL`: when an add returns it is on disk. "Raw" is this library's own transaction called
directly in one thread, in batches as large as there are writers: what remains of it is what the loop, the queue and
the validation cost.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from common import GivenVectors, drafts
from memory_core import Draft, Memory, Scope
from memory_core.drafts import complete_all
from memory_core.models import utc_now
from memory_core.storage.sqlite.connection import connect, prepare_file
from memory_core.storage.sqlite.prepared import prepare
from memory_core.storage.sqlite.writer import commit
from memory_core.storage.sqlite.writing import Insertion


async def through_the_library(path: Path, texts: list[Draft], writers: int) -> float:
    async with Memory(path, embedder=GivenVectors()) as memory:
        handle = memory.bind(app="bench", user="ann")
        await handle.add("warm up")

        async def write(mine: list[Draft]) -> None:
            for draft in mine:
                await handle.add(draft)

        start = time.perf_counter()
        await asyncio.gather(*(write(texts[number::writers]) for number in range(writers)))
        return len(texts) / (time.perf_counter() - start)


async def raw(path: Path, texts: list[Draft], batch: int) -> float:
    scope = Scope(app="bench", user="ann")
    prepared = [prepare(record) for record in complete_all(texts, scope, utc_now())]
    connection = await connect(prepare_file(path), synchronous="FULL")
    start = time.perf_counter()
    for first in range(0, len(prepared), batch):
        works = [Insertion(scope, prepared[first : first + batch])]
        await connection.run(partial(commit, works=works))
    seconds = time.perf_counter() - start
    await connection.close()
    return len(texts) / seconds


async def main(count: int) -> None:
    texts = [Draft(draft.text, author=draft.author) for draft in drafts(count, 7)]
    for writers in (1, 8, 32):
        with tempfile.TemporaryDirectory() as folder:
            ours = await through_the_library(Path(folder) / "ours.db", texts, writers)
            floor = await raw(Path(folder) / "raw.db", texts, writers)
        print(f"{writers:3} writers: {ours:7.0f} adds/s, raw {floor:7.0f}, share {ours / floor:.2f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_000))
