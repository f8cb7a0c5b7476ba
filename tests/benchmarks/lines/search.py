"""Search of an owner of 1,000 among 100,000, beside LangGraph's `InMemoryStore` with the same 1,000.

Ours is the whole hybrid search with every context rule, thread hops and hydrated records included. `InMemoryStore`
searches by meaning only. Vectors are given to both.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from langgraph.store.memory import InMemoryStore

from common import RememberedVectors, drafts, percentiles, questions, time_each
from lines.figure import absolute
from lines.filling import fill
from lines.result import Measured
from memory_core import Memory
from stores.frameworks import index_of

ROUNDS, ASKED = 10, 60
MOST = {"p50": 0.5, "p95": 1.5}


async def in_rounds(owned: int, total: int, rounds: int, asked: int) -> Measured:
    vectors = RememberedVectors()
    peer = InMemoryStore(index=index_of(vectors))

    async def theirs(question: str) -> object:
        return await peer.asearch(("ann",), query=question)

    for number, draft in enumerate(drafts(owned, 1)):
        await peer.aput(("ann",), str(number), {"text": draft.text})
    ours: dict[str, list[float]] = {"p50": [], "p95": []}
    other: dict[str, list[float]] = {"p50": [], "p95": []}
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "search.db", embedder=vectors) as memory:
            ann = memory.bind(app="bench", user="ann")
            await fill(ann, owned, seed=1)
            await fill(memory.bind(app="bench", user="others"), total - owned, seed=2)
            await ann.search("warm up")
            for number in range(rounds):
                some = questions(asked, number)
                for question in some:
                    vectors.vector(question)  # and is known from here on
                for call, found in ((ann.search, ours), (theirs, other)):
                    for name, value in zip(found, percentiles(await time_each(call, some)), strict=True):
                        found[name].append(value)
    beside = "`InMemoryStore`"
    return Measured(
        [absolute(name, "ms", ours[name], beside=beside, other=other[name], most=most) for name, most in MOST.items()]
    )


def measure(*, short: bool) -> Measured:
    return asyncio.run(in_rounds(50, 200, 1, 5) if short else in_rounds(1_000, 100_000, ROUNDS, ASKED))
