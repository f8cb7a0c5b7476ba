"""Search of an owner of 1,000 and of one of 10,000 among many, beside LangGraph's store on the same data.

    python tests/benchmarks/search.py [TOTAL]

Ours is the whole hybrid search with every context rule, thread hops and hydrated records included. LangGraph's
`InMemoryStore` (its SQLite store needs an extension that most Pythons cannot load) is dense only. Embedding the
query is excluded from both. Repetitions are interleaved.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig
from langgraph.store.memory import InMemoryStore

from common import DIMENSIONS, GivenVectors, RememberedVectors, drafts, percentiles, questions, time_each
from memory_core import Memory


class Vectors(Embeddings):
    """The same vectors, as LangGraph wants them."""

    def __init__(self, given: GivenVectors) -> None:
        self._given = given

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._given.vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._given.vector(text).tolist()
        return vector


@dataclass(frozen=True)
class Peer:
    """One user's namespace."""

    store: InMemoryStore
    owner: str

    async def search(self, query: str) -> object:
        return await self.store.asearch((self.owner,), query=query)


OWNERS = {"small": 1_000, "medium": 10_000}
ROUNDS, ASKED = 5, 40


async def main(total: int) -> None:
    embedder = RememberedVectors()
    peer = InMemoryStore(index=IndexConfig(dims=DIMENSIONS, embed=Vectors(embedder)))
    sizes = {**OWNERS, "rest": max(total - sum(OWNERS.values()), 0)}
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "search.db", embedder=embedder) as memory:
            for seed, (owner, size) in enumerate(sizes.items()):
                texts = drafts(size, seed)
                for start in range(0, size, 1_000):
                    await memory.bind(app="bench", user=owner).add_many(texts[start : start + 1_000])
                if owner in OWNERS:
                    for number, draft in enumerate(texts):
                        await peer.aput((owner,), str(number), {"text": draft.text})
            for owner, held in OWNERS.items():
                ours, theirs = [], []
                handle = memory.bind(app="bench", user=owner)
                await handle.search("warm up")
                for number in range(ROUNDS):
                    asked = questions(ASKED, number)
                    for question in asked:
                        embedder.vector(question)  # and is known from here on
                    ours += await time_each(handle.search, asked)
                    theirs += await time_each(Peer(peer, owner).search, asked)
                (p50, p95), (peer50, peer95) = percentiles(ours), percentiles(theirs)
                print(f"owner of {held:6} among {total}: ours p50 {p50:.2f} p95 {p95:.2f} ms, ", end="")
                print(f"LangGraph InMemoryStore p50 {peer50:.2f} p95 {peer95:.2f} ms, ratio {p50 / peer50:.2f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
