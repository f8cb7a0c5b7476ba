"""Embedders for tests: words hashed into a few dimensions, and ones that fail."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_core import EmbeddingError, Fingerprint

DIMENSIONS = 64


class WordEmbedder:
    """The words of a text, each in a hashed dimension: texts are similar if they share words."""

    def __init__(self, name: str = "words", dimensions: int = DIMENSIONS) -> None:
        self.fingerprint = Fingerprint(name, "1", dimensions)
        self.embedded: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert texts, "nothing to embed"
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._vector(text)

    async def close(self) -> None:
        pass

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.fingerprint.dimensions, np.float32)
        for word in text.lower().split() or [""]:
            digest = zlib.crc32(word.encode("utf-8", "surrogatepass"))
            vector[digest % len(vector)] += 1.0 if digest >> 16 & 1 else -1.0
        norm = float(np.linalg.norm(vector))
        if not norm:
            vector[0] = norm = 1.0
        unit: NDArray[np.float32] = vector / np.float32(norm)
        return unit


class MoodyEmbedder(WordEmbedder):
    """Fails as long as `failing` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = True

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.failing:
            raise EmbeddingError("the model is out for lunch")
        return await super().embed_documents(texts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        if self.failing:
            raise EmbeddingError("the model is out for lunch")
        return await super().embed_query(text)


class RefusingEmbedder(WordEmbedder):
    """Refuses a call with a text that contains `refused`, and every call while `is_out` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = "forbidden"
        self.is_out = False
        self.calls: list[int] = []
        """The number of texts of each call, with those that failed."""

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(len(texts))
        if self.is_out or any(self.refused in text for text in texts):
            raise EmbeddingError("400: content policy")
        return await super().embed_documents(texts)
