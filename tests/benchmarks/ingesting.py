"""Adds that are really embedded, by the default embedder, beside that embedder alone: does the store keep it busy?

    python tests/benchmarks/ingesting.py [COUNT]

Texts a second, each durable when its call returns; with `embed="later"`, until no vector is owed any more. Every figure
is the median of rounds that take turns.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from common import drafts
from memory_core import BoundMemory, Draft, Memory, MiniLmEmbedder

ROUNDS = 3
BATCH = 256


async def alone(texts: Sequence[Draft]) -> None:
    await _embedder.embed_documents([f"{draft.author}: {draft.text}" for draft in texts])


async def many(handle: BoundMemory, texts: Sequence[Draft]) -> None:
    for start in range(0, len(texts), BATCH):
        await handle.add_many(texts[start : start + BATCH])


async def writers(handle: BoundMemory, texts: Sequence[Draft], number: int) -> None:
    async def write(mine: Sequence[Draft]) -> None:
        for draft in mine:
            await handle.add(draft)

    await asyncio.gather(*(write(texts[first::number]) for first in range(number)))


async def later(handle: BoundMemory, texts: Sequence[Draft]) -> None:
    await handle.add_many(texts, embed="later")
    while (await handle.stats()).vectors_pending:  # noqa: ASYNC110  (nothing else says when the last one is there)
        await asyncio.sleep(0.01)


_embedder = MiniLmEmbedder()
WAYS: Final[dict[str, Callable[[BoundMemory, Sequence[Draft]], Awaitable[None]]]] = {
    f"add_many, {BATCH} at a time": many,
    "add, 32 writers": lambda handle, texts: writers(handle, texts, 32),
    "add, 8 writers": lambda handle, texts: writers(handle, texts, 8),
    "add_many, embed later": later,
}


async def main(count: int) -> None:
    texts = [Draft(draft.text, author=draft.author) for draft in drafts(count, 3)]
    await alone(texts[:8])
    shares: dict[str, list[float]] = {name: [] for name in WAYS}
    floor = 0.0
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            start = time.perf_counter()
            await alone(texts)
            floor = time.perf_counter() - start
            with tempfile.TemporaryDirectory() as folder:
                async with Memory(Path(folder) / "ingest.db") as memory:
                    handle = memory.bind(app="bench", user="ann")
                    await handle.add("warm up")
                    start = time.perf_counter()
                    await way(handle, texts)
                    shares[name].append(floor / (time.perf_counter() - start))
    print(f"the embedder alone: {count / floor:.0f} texts/s")
    for name, some in shares.items():
        print(f"{name:26}: {statistics.median(some):.2f} of it ({', '.join(f'{share:.2f}' for share in some)})")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
