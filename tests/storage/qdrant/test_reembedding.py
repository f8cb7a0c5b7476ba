"""A search that is under way when the embedder changes compares its vector with those of its own embedder."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import Draft, Memory, run_sync
from memory_core.models import Mode
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing.base import texts
from tests.storage.embedders import DIMENSIONS, WordEmbedder


class TurnedEmbedder(WordEmbedder):
    """Its words are in other dimensions."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        return np.roll(super()._vector(text), 1)


class ReplacedEmbedder(WordEmbedder):
    """Another embedder takes its place while it embeds a query."""

    def __init__(self, successor: WordEmbedder) -> None:
        super().__init__()
        self.successor = successor
        self.store: QdrantStore | None = None

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        made = await super().embed_query(text)
        if self.store is not None:
            await self.store.reembed(self.successor)
        return made


@pytest.mark.parametrize("dimensions", [DIMENSIONS, 96])
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_search_that_began_before_the_embedder_changed_finds_as_before(mode: Mode, dimensions: int) -> None:
    embedder = ReplacedEmbedder(TurnedEmbedder("successor", dimensions))
    store = QdrantStore(":memory:", embedder=embedder)
    with Memory(store) as memory:
        ann = memory.bind(user="ann")
        long = " ".join(f"The train to Bergen leaves at {n}." for n in range(200))
        run_sync(ann.add_many, ["Ann drinks jasmine tea", "Bob drinks coffee", Draft(long)])
        expected = run_sync(ann.search, "jasmine tea", mode=mode, floor=False)
        embedder.store = store
        assert run_sync(ann.search, "jasmine tea", mode=mode, floor=False) == expected
        assert texts(run_sync(ann.search, "jasmine tea", mode=mode, limit=1)) == ["Ann drinks jasmine tea"]
