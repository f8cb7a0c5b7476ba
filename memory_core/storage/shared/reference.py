"""The vectors of texts whose relation is known: the cosines of a query are measured against theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memory_core.models import Fingerprint
from memory_core.storage.shared.embedding_batches import checked_vectors
from memory_core.supplied import Embedder

if TYPE_CHECKING:
    from memory_core.retrieval.cosine_scale import Leaned, Unrelated
    from memory_core.supplied import Vector, Vectors

_REMEMBERED: Final = 32
"""Ways of leaning: 160 kB for the default embedder."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The vectors that an embedder makes of these texts."""

    texts: Vectors
    """The unit vector of each unrelated text."""
    unrelated: Unrelated
    """The distribution of their cosines."""
    small_talk: Vectors
    """The unit vector of each phrase of small talk (`small_talk.py`)."""
    leanings: dict[bytes, Leaned]
    """By the weights: most queries lean in one of two ways, and computing one takes as long as a small search."""

    def leaning(self, weights: Vector) -> Leaned:
        """The comparison with queries that lean."""
        from memory_core.retrieval.cosine_scale import Leaned, unrelated  # noqa: PLC0415  (only stores that embed)
        from memory_core.retrieval.unit_vectors import scaled  # noqa: PLC0415  (numpy)

        known = self.leanings.get(weights.tobytes())
        if known is None:
            known = Leaned(weights, unrelated(self.texts, scaled(self.texts * weights)))
            if len(self.leanings) < _REMEMBERED:
                self.leanings[weights.tobytes()] = known
        return known

    def small_talk_cosine(self, query: Vector) -> float:
        """The cosine of a query with the nearest phrase of small talk."""
        return float((self.small_talk @ query).max())


_references: Final[dict[Fingerprint, Reference]] = {}
"""By fingerprint, which determines the vector of each text."""


def reference_texts() -> list[str]:
    """Unrelated texts, and after them the phrases of small talk."""
    from memory_core.retrieval.cosine_scale import TEXTS  # noqa: PLC0415  (only stores that embed need it)
    from memory_core.retrieval.small_talk import PHRASES  # noqa: PLC0415

    return [*TEXTS, *PHRASES]


async def reference_of(embedder: Embedder) -> Reference:
    """The vectors that an embedder makes of the texts, computed once per process.

    Raises:
        EmbeddingError: As for `embed_documents`.
    """
    from memory_core.retrieval.cosine_scale import TEXTS, unrelated  # noqa: PLC0415  (only stores that embed need it)

    fingerprint = embedder.fingerprint
    if fingerprint not in _references:
        texts = reference_texts()
        wanted = (len(texts), fingerprint.dimensions)
        answer = await checked_vectors(embedder, lambda: embedder.embed_documents(texts), wanted)
        unrelated_texts = answer[: len(TEXTS)]
        _references[fingerprint] = Reference(unrelated_texts, unrelated(unrelated_texts), answer[len(TEXTS) :], {})
    return _references[fingerprint]
