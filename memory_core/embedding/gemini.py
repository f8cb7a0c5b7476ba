"""Embed with Google's Gemini API."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from memory_core.embedding.hosted import HostedEmbedder, Limits
from memory_core.errors import EmbeddingError, InvalidInputError
from memory_core.models import Fingerprint

GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta"

SHORTEST: Final = 128
LONGEST: Final = 3072
"""Dimensions of the models (ai.google.dev/gemini-api/docs/embeddings)."""

MOST_TEXTS: Final = 100
"""The number of texts that `batchEmbedContents` takes."""


class GeminiEmbedder(HostedEmbedder):
    """A Gemini embedding model (`models/…:batchEmbedContents`); documents and queries get their task types.

    Gemini returns unit vectors at 3,072 dimensions only; here every vector is normalised to unit length.

    Args:
        model: `gemini-embedding-001`, or another one that knows the task types `RETRIEVAL_DOCUMENT` and
            `RETRIEVAL_QUERY`.
        dimensions: 128 to 3072; Google recommends 768, 1536 or 3072.
        api_key: If not given, `GEMINI_API_KEY` or else `GOOGLE_API_KEY` is read at each request, but sent to Google
            only.
        base_url: Another server with the same protocol; the URL without `/models`.
        limits: Batches, timeouts and retries; a request never has more than 100 texts.

    Raises:
        InvalidInputError: The dimensions are out of range, or the URL is invalid.
    """

    def __init__(
        self,
        model: str = "gemini-embedding-001",
        *,
        dimensions: int = 768,
        api_key: str | None = None,
        base_url: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        if not SHORTEST <= dimensions <= LONGEST:
            raise InvalidInputError(f"dimensions must be from {SHORTEST} to {LONGEST} for Gemini, not {dimensions}")
        limits = limits or Limits()
        if limits.batch_texts > MOST_TEXTS:
            raise InvalidInputError(f"batch_texts must be at most {MOST_TEXTS} for Gemini, not {limits.batch_texts}")
        name = model.removeprefix("models/")
        super().__init__(Fingerprint(name, "1", dimensions), _Gemini(name, dimensions, api_key, base_url), limits)


class _Gemini:
    def __init__(self, model: str, dimensions: int, api_key: str | None, base_url: str | None) -> None:
        self._model = f"models/{model}"
        self._dimensions = dimensions
        self._key = api_key
        self._is_google = base_url is None
        self.url = f"{(base_url or GEMINI_URL).rstrip('/')}/{self._model}:batchEmbedContents"

    def credentials(self) -> dict[str, str]:
        key = self._key
        if key is None and self._is_google:
            key = os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")
            if key is None:
                raise EmbeddingError("Gemini needs a key: give api_key, or set GEMINI_API_KEY")
        return {"x-goog-api-key": key} if key else {}

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        kind = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        fixed = {"model": self._model, "taskType": kind, "outputDimensionality": self._dimensions}
        return {"requests": [fixed | {"content": {"parts": [{"text": text}]}} for text in texts]}

    def vectors(self, answer: Any) -> Sequence[Sequence[float]]:
        return [list(row["values"]) for row in answer["embeddings"]]
