"""The retrievers that anybody could write in an afternoon: BM25, the cosine, and their reciprocal rank fusion."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from memory_core.handle import BoundMemory
from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import analyse, query_terms
from memory_core.values.limits import MAX_LIMIT

SATURATION, LENGTH = 1.2, 0.75
"""k1 and b of BM25, the values that Lucene uses."""
FUSION: Final = 60
"""k of Cormack, Clarke and Buettcher, SIGIR 2009."""


class Bm25:
    """Okapi BM25 over the texts of some memories, stemmed and without English stop words."""

    def __init__(self, records: Sequence[MemoryRecord]) -> None:
        self._ids = [record.id for record in records]
        self._texts = [Counter(analyse(record.text)) for record in records]
        self._holding = Counter(term for text in self._texts for term in text)
        self._mean = fmean([text.total() for text in self._texts] or [1.0]) or 1.0

    def rank(self, question: str) -> list[str]:
        """Ids of the memories with a term of the question, best first."""
        asked = query_terms(question)
        scores = [self._score(asked, text) for text in self._texts]
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        return [self._ids[place] for place in order if scores[place] > 0]

    def _score(self, asked: Sequence[str], text: Mapping[str, int]) -> float:
        damping = SATURATION * (1 - LENGTH + LENGTH * sum(text.values()) / self._mean)
        return sum(
            self._rarity(term) * text[term] * (SATURATION + 1) / (text[term] + damping)
            for term in asked
            if term in text
        )

    def _rarity(self, term: str) -> float:
        holding = self._holding[term]
        return math.log(1 + (len(self._texts) - holding + 0.5) / (holding + 0.5))


async def by_cosine(handle: BoundMemory, question: str) -> list[str]:
    """Ids of the memories nearest to the question, nearest first."""
    hits = await handle.search(question, mode="vector", floor=False, limit=MAX_LIMIT)
    return [hit.record.id for hit in hits]


def fused(*rankings: Sequence[str]) -> list[str]:
    """The reciprocal rank fusion of rankings."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (FUSION + rank)
    return sorted(scores, key=lambda key: -scores[key])
