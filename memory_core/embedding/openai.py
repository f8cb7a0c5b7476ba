"""Embed with OpenAI, or with any server that speaks its protocol: Ollama, vLLM, llama.cpp, LM Studio, LiteLLM, …"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from memory_core.embedding.checks import known_dimensions
from memory_core.embedding.hosted import HostedEmbedder, Limits
from memory_core.errors import EmbeddingError, InvalidInputError
from memory_core.models import Fingerprint

OPENAI_URL: Final = "https://api.openai.com/v1"

KNOWN_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "all-minilm": 384,
    "embeddinggemma": 768,
    "mxbai-embed-large": 1024,
    "nomic-embed-text": 768,
}
"""Full dimensions by the providers' model pages (platform.openai.com, ollama.com/library)."""

_SHORTENED: Final = "text-embedding-3-"
"""Models that can return shorter vectors; other servers reject the parameter."""


class OpenAiEmbedder(HostedEmbedder):
    """A model of an OpenAI-compatible endpoint (`POST {base_url}/embeddings`).

    ```python
    from memory_core.embedding.openai import OpenAiEmbedder

    hosted = OpenAiEmbedder()  # reads OPENAI_API_KEY when it is first used
    local = OpenAiEmbedder("nomic-embed-text", base_url="http://localhost:11434/v1")
    ```

    Args:
        model: The server's name of the model.
        api_key: If not given, `OPENAI_API_KEY` is read at each request, but sent to OpenAI only: a server given by
            `base_url` never gets a key that was not meant for it.
        base_url: The URL without `/embeddings`.
        dimensions: Length of the vectors. Needed for models that `KNOWN_DIMENSIONS` does not list; for
            `text-embedding-3-*` it may be less than the full length.
        query_prefix: Put before every query, if the model was trained with it ("search_query: " for nomic-embed-text).
        document_prefix: Put before every document ("search_document: ").
        limits: Batches, timeouts and retries.

    Raises:
        InvalidInputError: The dimensions of the model are neither given nor known, or the URL is invalid.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
        limits: Limits | None = None,
    ) -> None:
        full = KNOWN_DIMENSIONS.get(model.removesuffix(":latest"))
        wanted = known_dimensions(model.removesuffix(":latest"), dimensions, KNOWN_DIMENSIONS)
        if full is not None and wanted > full:
            raise InvalidInputError(f"dimensions is {dimensions}; {model} makes 1 to {full}")
        prefixes = {False: document_prefix, True: query_prefix}
        super().__init__(
            Fingerprint(model, _revision(prefixes), wanted),
            _OpenAi(model, api_key, base_url, None if wanted == full else wanted, prefixes),
            limits or Limits(),
        )


class _OpenAi:
    def __init__(
        self,
        model: str,
        api_key: str | None,
        base_url: str | None,
        shorter: int | None,
        prefixes: dict[bool, str],
    ) -> None:
        self._key = api_key
        self._is_openai = base_url is None
        self.url = (base_url or OPENAI_URL).rstrip("/") + "/embeddings"
        # Base64 of float32 is a quarter of the size and fast to decode. Servers that do not support it send numbers.
        self._fixed: dict[str, object] = {"model": model, "encoding_format": "base64"}
        if shorter is not None and model.startswith(_SHORTENED):
            self._fixed["dimensions"] = shorter
        self._prefixes = prefixes

    def credentials(self) -> dict[str, str]:
        key = self._key or (os.environ.get("OPENAI_API_KEY") if self._is_openai else None)
        if key is None and self._is_openai:
            raise EmbeddingError("OpenAI needs a key: give api_key, or set OPENAI_API_KEY")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        return self._fixed | {"input": [self._prefixes[query] + text for text in texts]}

    def vectors(self, answer: Any) -> Sequence[Sequence[float]]:
        rows = sorted(answer["data"], key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] != list(range(len(rows))):
            raise ValueError("the vectors are not numbered one by one")
        return [_numbers(row["embedding"]) for row in rows]


def _numbers(embedding: Any) -> Sequence[float]:
    import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

    if isinstance(embedding, str):
        decoded: list[float] = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").tolist()
        return decoded
    return list(embedding)


def _revision(prefixes: dict[bool, str]) -> str:
    """The revision includes the prefixes, because they change the vectors."""
    if not any(prefixes.values()):
        return "1"
    return "1-" + blake2b(repr(prefixes).encode(), digest_size=4).hexdigest()
