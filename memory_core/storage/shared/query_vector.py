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
from memory_core.supplied import Embedder, familiarity, is_leaning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_core.retrieval.cosine_scale import Leaned, Unrelated
    from memory_core.retrieval.ranking import Cosines


@dataclass(frozen=True, slots=True)
class Compared:
    """The vector with which a ranking compares texts."""

    vector: NDArray[np.float32]
    """Of unit length."""
    unrelated: Unrelated
    """The cosines of unrelated texts with it."""
    leaned: Leaned | None = None
    """The way in which it was made of the vector of the query; `None` if it is that vector."""


@dataclass(frozen=True, slots=True)
class Vector:
    """The vector of a query, and what a ranking compares with: similarities are cosines with `values`, whatever a
    ranking leans to."""

    values: NDArray[np.float32]
    """Of unit length."""
    ranked: Compared
    """For texts in English, and those whose language is not sure."""
    others: Compared | None = None
    """For texts in other languages (`features.OTHER_LANGUAGE`), if they are compared with another vector."""
    known: float = 1.0
    """The share of the query's words that the embedder knows, from 0 to 1."""
    small_talk: float = -1.0
    """The cosine of `ranked` with the nearest phrase of small talk (`small_talk.py`)."""

    @property
    def leans(self) -> bool:
        """True if a ranking compares with another vector than hits show."""
        return self.ranked.leaned is not None

    def cosines(self, values: NDArray[np.float32]) -> Cosines:
        """The cosines that a ranking reads, from their values on the scale of `ranked`."""
        from memory_core.retrieval.ranking import Cosines  # noqa: PLC0415  (only stores that embed need it)

        others = None if self.others is None else self.others.leaned
        return Cosines(values, self.ranked.unrelated, self.known, self.small_talk, self.ranked.leaned, others)


async def embed_query(embedder: Embedder, text: str, *, leans: bool = True) -> Vector:
    """The vector of a query, with its familiarity; raises `EmbeddingError` as `embed` does.

    Args:
        leans: Rank by vectors that lean, if the embedder does; without, by the vector itself.
    """
    wanted = (embedder.fingerprint.dimensions,)
    values = await checked_vectors(embedder, lambda: embedder.embed_query(text), wanted)
    known = await familiarity(embedder, text)
    reference = await reference_of(embedder)
    if not leans or not is_leaning(embedder):
        plain = Compared(values, reference.unrelated)
        return Vector(values, plain, None, known, reference.small_talk_cosine(values))
    weights = await embedder.leaning(text)
    ranked, others = (_compared(values, reference.leaning(each)) for each in weights)
    is_one = bool((weights.english == weights.other).all())
    return Vector(values, ranked, None if is_one else others, known, reference.small_talk_cosine(ranked.vector))


def _compared(values: NDArray[np.float32], leaned: Leaned) -> Compared:
    return Compared(leaned.of(values), leaned.unrelated, leaned)


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
        return Vector(request.vector, Compared(request.vector, (await reference_of(embedder)).unrelated))
    if not request.text.strip():
        return None
    return await embed_query(embedder, without_names(request.text, without), leans=request.mode != "vector")
