"""Which embedding model the environment asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from memory_core import Embedder, InvalidInputError

GEMINI_DIMENSIONS: Final = 768
"""What RadBot's collections have."""


def get_embedding_model(vector_size: int | None = None, *, environment: Mapping[str, str] | None = None) -> Embedder:
    """The embedder that `RADBOT_EMBED_MODEL` names.

    | value | embedder |
    |---|---|
    | `gemini` | `GeminiEmbedder`, with the key in `GEMINI_API_KEY` or `GOOGLE_API_KEY` |
    | `sentence-transformers` | `SentenceTransformerEmbedder`, of the model in `SENTENCE_TRANSFORMERS_MODEL` |
    | none | the default of memory-core, all-MiniLM-L6-v2, which needs neither key nor network |

    Args:
        vector_size: Length of the vectors. Gemini makes them as long as that (768 without it); another model must
            have it.
        environment: By default the process's own.

    Raises:
        InvalidInputError: The name is none of these (a typing error must not send texts to somebody else), or the
            model's vectors have another length.
        ImportError: The embedder needs an extra; the message names it.
    """
    found = os.environ if environment is None else environment
    embedder = _named(found.get("RADBOT_EMBED_MODEL", "").strip().lower(), found, vector_size)
    length = embedder.fingerprint.dimensions
    if vector_size not in (None, length):
        raise InvalidInputError(f"{embedder.fingerprint.name!r} makes vectors of {length} numbers, not {vector_size!r}")
    return embedder


def _named(name: str, environment: Mapping[str, str], vector_size: int | None) -> Embedder:
    if name == "gemini":
        from memory_core import GeminiEmbedder  # noqa: PLC0415  (needs an extra)

        return GeminiEmbedder(dimensions=vector_size or GEMINI_DIMENSIONS)
    if name == "sentence-transformers":
        from memory_core import SentenceTransformerEmbedder  # noqa: PLC0415  (needs an extra, and torch)

        model = environment.get("SENTENCE_TRANSFORMERS_MODEL") or "all-MiniLM-L6-v2"
        return SentenceTransformerEmbedder(model)
    if name:
        raise InvalidInputError(f"RADBOT_EMBED_MODEL is {name!r}; it may be gemini or sentence-transformers")
    from memory_core import MiniLmEmbedder  # noqa: PLC0415  (numpy and onnxruntime)

    return MiniLmEmbedder()
