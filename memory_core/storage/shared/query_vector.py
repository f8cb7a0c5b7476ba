"""The vector of a search request, and how it compares with unrelated texts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInputError
from memory_core.requests import SearchRequest
from memory_core.retrieval.question import without_names
from memory_core.storage.shared.embedding_batches import checked_vectors
from memory_core.storage.shared.reference import reference_of
from memory_core.supplied import Embedder, familiarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_core.retrieval.cosine_scale import Unrelated


@dataclass(frozen=True, slots=True)
class Vector:
    """The vector of a query."""

    values: NDArray[np.float32]
    """Of unit length."""
    unrelated: Unrelated
    known: float = 1.0
    """The share of the query's words that the embedder knows, from 0 to 1."""
    small_talk: float = -1.0
    """The cosine with the nearest phrase of small talk (`small_talk.py`)."""


async def embed_query(embedder: Embedder, text: str) -> Vector:
    """The vector of a query, with its familiarity; raises `EmbeddingError` as `embed` does."""
    values = await checked_vectors(embedder, lambda: embedder.embed_query(text), (embedder.fingerprint.dimensions,))
    known = await familiarity(embedder, text)
    reference = await reference_of(embedder)
    return Vector(values, reference.unrelated, known, float((reference.small_talk @ values).max()))


async def query_vector(embedder: Embedder | None, request: SearchRequest, without: Collection[str]) -> Vector | None:
    """The vector of a search request, if it needs one.

    Raises:
        EmbeddingError: As for `embed`.
        InvalidInputError: The request needs vectors and there is no embedder, or its vector has another dimension.
    """
    if embedder is None and request.mode == "vector":
        raise InvalidInputError(
            "this memory was opened with embedder=None, so there are no vectors for mode='vector' to compare; open "
            "it with an embedder (Memory(path) brings one), or search with mode='lexical' or 'hybrid'"
        )
    if embedder is None or request.mode == "lexical":
        return None
    if request.vector is not None:
        wanted = embedder.fingerprint.dimensions
        if len(request.vector) != wanted:
            raise InvalidInputError(f"the vectors of this memory have {wanted} numbers, not {len(request.vector)}")
        return Vector(request.vector, (await reference_of(embedder)).unrelated)
    return await embed_query(embedder, without_names(request.text, without)) if request.text.strip() else None
