"""The vector of a search request, and how it compares with unrelated texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInputError
from memory_core.requests import SearchRequest
from memory_core.retrieval.question import without_names
from memory_core.storage.shared.embedding_batches import checked_vectors
from memory_core.storage.shared.reference import leaned, reference_of
from memory_core.supplied import Embedder, familiarity, is_leaning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_core.retrieval.cosine_scale import Unrelated


@dataclass(frozen=True, slots=True)
class Vector:
    """The vector of a query, and what a ranking compares with: similarities are cosines with `values`, whatever a
    ranking leans to."""

    values: NDArray[np.float32]
    """Of unit length."""
    ranked: NDArray[np.float32]
    """Of unit length: what a ranking compares texts with; `values` unless the embedder leans (`Leaning`)."""
    unrelated: Unrelated
    """The cosines of unrelated texts with `ranked`."""
    known: float = 1.0
    """The share of the query's words that the embedder knows, from 0 to 1."""
    small_talk: float = -1.0
    """The cosine of `ranked` with the nearest phrase of small talk (`small_talk.py`)."""

    @property
    def leans(self) -> bool:
        """Whether a ranking compares with another vector than hits show."""
        return self.ranked is not self.values


async def embed_query(embedder: Embedder, text: str, *, leans: bool = True) -> Vector:
    """The vector of a query, with its familiarity; raises `EmbeddingError` as `embed` does.

    Args:
        leans: Whether to rank by a vector that leans; without, by the vector itself.
    """
    wanted = (embedder.fingerprint.dimensions,)
    values = await checked_vectors(embedder, lambda: embedder.embed_query(text), wanted)
    known = await familiarity(embedder, text)
    reference = await reference_of(embedder)
    weigh = _weigh(embedder) if leans else None
    if weigh is None:
        return Vector(values, values, reference.unrelated, known, reference.small_talk_cosine(values))
    weights = await checked_vectors(embedder, lambda: weigh(text), wanted)
    ranked = leaned(values[None], weights)[0]
    return Vector(values, ranked, reference.leaning(weights), known, reference.small_talk_cosine(ranked))


def _weigh(embedder: object) -> Callable[[str], Awaitable[NDArray[np.float32]]] | None:
    return embedder.leaning if is_leaning(embedder) else None


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
        return Vector(request.vector, request.vector, (await reference_of(embedder)).unrelated)
    if not request.text.strip():
        return None
    return await embed_query(embedder, without_names(request.text, without), leans=request.mode != "vector")
