"""Durable single adds by 1, 8 and 32 writers, beside LangGraph's `AsyncSqliteStore` with vectors.

An add is one call with one text, and every writer awaits it before the next. It is on disk when it returns, for both,
and vectors are given to both.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import GivenVectors, RememberedVectors, drafts
from lines.figure import relative
from lines.result import Measured, SkippedError
from stores.face import Ours, Peer
from stores.frameworks import LangGraphSqlite

WRITERS = (1, 8, 32)
ROUNDS, SECONDS = 7, 1.0
LEAST = 1.2


async def pace(kind: type[Peer], vectors: GivenVectors, texts: Sequence[str], writers: int, seconds: float) -> float:
    """Adds a second of an empty store."""
    peer = kind()
    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder:
        await peer.open(Path(folder), vectors)
        await peer.add("ann", next(numbers), texts[0])
        start = time.perf_counter()

        async def write() -> int:
            added = 0
            while time.perf_counter() - start < seconds:
                number = next(numbers)
                await peer.add("ann", number, texts[number % len(texts)])
                added += 1
            return added

        added = await asyncio.gather(*(write() for _ in range(writers)))
        took = time.perf_counter() - start
        await peer.close()
    return sum(added) / took


async def in_rounds(count: int, rounds: int, seconds: float) -> Measured:
    vectors = RememberedVectors()
    texts = [draft.text for draft in drafts(count, 5)]
    for text in texts:
        vectors.vector(text)
    found = []
    for writers in WRITERS:
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(await pace(Ours, vectors, texts, writers, seconds))
            theirs.append(await pace(LangGraphSqlite, vectors, texts, writers, seconds))
        name = f"{writers} writers" if writers > 1 else "1 writer"
        found.append(relative(name, "/s", ours, beside="`AsyncSqliteStore`", other=theirs, least=LEAST))
    return Measured(found)


def measure(*, short: bool) -> Measured:
    if LangGraphSqlite.searches_by == "nothing":
        raise SkippedError("this Python cannot load SQLite extensions, which `AsyncSqliteStore` needs for vectors")
    return asyncio.run(in_rounds(100, 1, 0.05) if short else in_rounds(20_000, ROUNDS, SECONDS))
