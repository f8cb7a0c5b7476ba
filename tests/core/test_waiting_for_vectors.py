"""Waiting until everything stored can be found by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from memory_core import Draft, EmbeddingError, Memory
from memory_core.adapting import settled
from memory_core.embedding.hashing import HashingEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Refusing(HashingEmbedder):
    """Fails as long as it is told to."""

    refuses = True

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.refuses:
            raise EmbeddingError("no model yet")
        return await super().embed_documents(texts)


def test_it_returns_once_every_vector_is_there() -> None:
    async def store_and_wait() -> tuple[int, int]:
        async with Memory(":memory:", embedder=HashingEmbedder()) as memory:
            ann = memory.bind(app="settled", user="ann")
            await ann.add_many([Draft(f"note {n}") for n in range(300)], embed="later")
            await settled(ann)
            found = await ann.search("note 7", mode="vector", limit=300, floor=False)
            return (await ann.stats()).vectors_pending, len(found)

    assert asyncio.run(store_and_wait()) == (0, 300)


def test_it_says_how_many_are_left_after_the_time() -> None:
    async def store_and_wait() -> None:
        embedder = Refusing()
        async with Memory(":memory:", embedder=embedder) as memory:
            ann = memory.bind(app="settled", user="ann")
            await ann.add("the copper kettle")
            with pytest.raises(EmbeddingError, match=r"pending after 0\.05 s: 1"):
                await settled(ann, timeout=0.05)
            await settled(memory.bind(app="settled", user="bob"), timeout=0.0)  # nothing of his is pending
            embedder.refuses = False
            await settled(ann, timeout=300)
            assert await ann.search("kettle", mode="vector", floor=False)

    asyncio.run(store_and_wait())
