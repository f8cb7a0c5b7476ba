"""A synchronous model on a thread of its own, and what happens when it misbehaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import Embedder, EmbeddingError, Fingerprint, InvalidInputError
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.embedding.threaded import Model, ThreadedEmbedder
from memory_core.testing.embedder import EmbedderContract

FINGERPRINT = Fingerprint("slow", "1", 512)


class Hashing:
    """Vectors five times too long, by a model that bears one call at a time."""

    def __init__(self) -> None:
        self._in_use = threading.Lock()

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        assert self._in_use.acquire(blocking=False), "the model was called twice at once"
        try:
            rows: Sequence[NDArray[np.float32]] = list(5 * asyncio.run(HashingEmbedder().embed_documents(texts)))
        finally:
            self._in_use.release()
        return rows

    def query(self, text: str) -> NDArray[np.float32]:
        return self.documents([text])[0]


class Constant:
    def __init__(self, value: float, dimensions: int = 512) -> None:
        self._row = np.full(dimensions, value, np.float32)

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        return [self._row] * len(texts)

    def query(self, text: str) -> NDArray[np.float32]:
        return self._row


class TestThreaded(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return lambda: ThreadedEmbedder(FINGERPRINT, Hashing)


async def test_a_model_is_never_called_twice_at_once() -> None:
    embedder = ThreadedEmbedder(FINGERPRINT, Hashing)
    calls = [embedder.embed_documents(["tea"] * 100), *(embedder.embed_query("tea") for _ in range(10))]
    documents, *queries = await asyncio.gather(*calls)
    await embedder.close()
    assert (len(documents), {len(query) for query in queries}) == (100, {512})


async def test_a_model_that_cannot_be_loaded_is_tried_again_with_the_next_text() -> None:
    models: list[Model] = []

    def load() -> Model:
        if not models:
            raise OSError("no such model")
        return models[0]

    embedder = ThreadedEmbedder(FINGERPRINT, load)
    with pytest.raises(EmbeddingError, match="slow cannot be used: OSError: no such model"):
        await embedder.embed_query("tea")
    models.append(Hashing())
    assert len(await embedder.embed_query("tea")) == 512
    await embedder.close()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
async def test_a_vector_without_a_direction_is_refused(value: float) -> None:
    embedder = ThreadedEmbedder(FINGERPRINT, lambda: Constant(value))
    with pytest.raises(EmbeddingError, match="without a direction"):
        await embedder.embed_documents(["tea"])
    await embedder.close()


async def test_other_dimensions_than_promised_are_refused() -> None:
    embedder = ThreadedEmbedder(FINGERPRINT, lambda: Constant(1.0, 3))
    with pytest.raises(EmbeddingError, match=r"shape \(2, 3\) for 2 texts, .* 512 dimensions; give dimensions=3"):
        await embedder.embed_documents(["tea", "cake"])
    await embedder.close()


async def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="not one text"):
        await ThreadedEmbedder(FINGERPRINT, Hashing).embed_documents("tea")
