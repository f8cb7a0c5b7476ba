"""A cache before any embedder: each text is embedded once, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import Embedder, EmbeddingError, Fingerprint, InvalidInputError
from memory_core.embedding.cached import CachedEmbedder
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.testing.embedder import EmbedderContract


class Counting:
    """Counts what reaches the embedder inside; fails as long as `failing` is set."""

    def __init__(self, dimensions: int = 8) -> None:
        self._inner = HashingEmbedder(dimensions=dimensions)
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.failing = False
        self.closed = 0

    @property
    def fingerprint(self) -> Fingerprint:
        return self._inner.fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.failing:
            raise EmbeddingError("out for lunch")
        assert texts
        self.documents += texts
        return await self._inner.embed_documents(texts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        self.queries.append(text)
        return await self._inner.embed_query(text)

    async def close(self) -> None:
        self.closed += 1


class TestCached(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return lambda: CachedEmbedder(HashingEmbedder())


class TestCachedInLittleRoom(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return lambda: CachedEmbedder(HashingEmbedder(), max_bytes=3 * 512 * 4)


class TestWithoutRoom(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return lambda: CachedEmbedder(HashingEmbedder(), max_bytes=0)


async def test_equal_texts_are_embedded_once() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner)
    rows = await embedder.embed_documents(["tea", "cake", "tea", "cake"])
    again = await embedder.embed_documents(["cake", "milk", "tea"])
    assert inner.documents == ["tea", "cake", "milk"]
    np.testing.assert_array_equal(rows, rows[[0, 1, 0, 1]])
    np.testing.assert_array_equal(again[[0, 2]], rows[[1, 0]])
    await embedder.embed_query("tea")
    await embedder.embed_query("tea")
    assert inner.queries == ["tea"]  # not the document's vector: the two may differ


async def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner, max_bytes=2 * 8 * 4 + 31)
    await embedder.embed_documents(["tea", "cake"])
    await embedder.embed_documents(["tea"])
    await embedder.embed_documents(["milk"])
    await embedder.embed_documents(["tea"])
    assert inner.documents == ["tea", "cake", "milk"]
    await embedder.embed_documents(["cake"])
    assert inner.documents == ["tea", "cake", "milk", "cake"]


async def test_a_failure_is_not_remembered() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner)
    await embedder.embed_documents(["tea"])
    inner.failing = True
    with pytest.raises(EmbeddingError):
        await embedder.embed_documents(["tea", "cake"])
    assert len(await embedder.embed_documents(["tea"])) == 1
    inner.failing = False
    assert len(await embedder.embed_documents(["tea", "cake"])) == 2
    assert inner.documents == ["tea", "cake"]


async def test_closing_forgets_and_closes_what_is_inside() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner)
    await embedder.embed_documents(["tea"])
    await embedder.close()
    await embedder.embed_documents(["tea"])
    assert inner.documents == ["tea", "tea"]
    assert inner.closed == 1


async def test_many_callers_at_once_get_their_own_rows() -> None:
    embedder = CachedEmbedder(Counting(), max_bytes=4 * 8 * 4)
    texts = [[f"text {(start + step) % 9}" for step in range(5)] for start in range(40)]
    found = await asyncio.gather(*map(embedder.embed_documents, texts))
    plain = HashingEmbedder(dimensions=8)
    for some, rows in zip(texts, found, strict=True):
        np.testing.assert_array_equal(rows, await plain.embed_documents(some))


async def test_an_embedder_that_loses_texts_is_found_out() -> None:
    class Lossy(Counting):
        async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return (await super().embed_documents(texts))[1:]

    with pytest.raises(EmbeddingError, match="returned 1 vectors for 2 texts"):
        await CachedEmbedder(Lossy()).embed_documents(["tea", "cake"])


async def test_bad_values_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_bytes must not be negative"):
        CachedEmbedder(Counting(), max_bytes=-1)
    with pytest.raises(InvalidInputError, match="not one text"):
        await CachedEmbedder(Counting()).embed_documents("tea")
