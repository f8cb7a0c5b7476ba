"""Selects the embedding model that the environment names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from memory_core import Embedder, InvalidInputError, run_sync

GEMINI_DIMENSIONS: Final = 768
"""Dimensions of RadBot's collections."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model for embeddings, as RadBot documents it."""

    name: str
    vector_size: int
    """Dimensions of its vectors."""
    client: Embedder
    """The embedder of memory-core."""


def embed_text(text: str, model: EmbeddingModel | None = None) -> list[float]:
    """Return the vector of a text, of length 1; synchronous.

    Args:
        text: Any text.
        model: By default the model that the environment names, which is loaded for this call only.

    Raises:
        EmbeddingError: The model cannot be loaded or run.
    """

    async def embed() -> list[float]:
        used = model or get_embedding_model()
        try:
            (vector,) = await used.client.embed_documents([text])
            return [float(value) for value in vector]
        finally:
            if model is None:
                await used.client.close()

    return run_sync(embed)


def get_embedding_model(vector_size: int | None = None) -> EmbeddingModel:
    """Create the model that `RADBOT_EMBED_MODEL` names.

    | value | embedder |
    |---|---|
    | `gemini` | `GeminiEmbedder`, with the key in `GEMINI_API_KEY` or `GOOGLE_API_KEY` |
    | `sentence-transformers` | `SentenceTransformerEmbedder`, with the model in `SENTENCE_TRANSFORMERS_MODEL` |
    | not set | the default of memory-core, which needs neither key nor network |

    Args:
        vector_size: Dimensions of the vectors. Gemini produces the requested size (768 by default); other models
            must have this size.

    Raises:
        InvalidInputError: The name is unknown (a typing error must not send texts to another provider), or the
            model's vectors have other dimensions.
        ImportError: The embedder needs an extra, which the message names.
    """
    embedder = _named(os.getenv("RADBOT_EMBED_MODEL", "").strip().lower(), vector_size)
    name, length = embedder.fingerprint.name, embedder.fingerprint.dimensions
    if vector_size not in (None, length):
        raise InvalidInputError(f"{name!r} makes vectors of {length} numbers, not {vector_size!r}")
    return EmbeddingModel(name, length, embedder)


def _named(name: str, vector_size: int | None) -> Embedder:
    if name == "gemini":
        from memory_core import GeminiEmbedder  # noqa: PLC0415  (needs an extra)

        return GeminiEmbedder(dimensions=vector_size or GEMINI_DIMENSIONS)
    if name == "sentence-transformers":
        from memory_core import SentenceTransformerEmbedder  # noqa: PLC0415  (needs an extra, and torch)

        return SentenceTransformerEmbedder(os.getenv("SENTENCE_TRANSFORMERS_MODEL") or "all-MiniLM-L6-v2")
    if name:
        raise InvalidInputError(f"RADBOT_EMBED_MODEL is {name!r}; it must be gemini or sentence-transformers")
    from memory_core import MultilingualEmbedder  # noqa: PLC0415  (numpy and onnxruntime)

    return MultilingualEmbedder()
