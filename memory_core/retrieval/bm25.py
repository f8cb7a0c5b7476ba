"""The lexical arm: BM25 with the statistics of one owner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.corpus import Corpus

Floats = NDArray[np.float32]

K1: Final = 0.9
B: Final = 0.4
"""BM25 as Robertson and Zaragoza 2009, with the parameters Anserini found best for short passages."""


@dataclass(frozen=True, slots=True)
class Lexical:
    """How well each row matches the words of a query."""

    scores: Floats
    """BM25; 0 for rows without any of the terms and for dead rows."""
    ideal: float
    """The score of a text of average length that has every term once, also those that no text has."""

    @property
    def best_coverage(self) -> float:
        """The largest share of the query, weighted by how telling its terms are, that a row has; may exceed 1."""
        return float(np.max(self.scores, initial=0)) / (self.ideal or 1.0)


def bm25(corpus: Corpus, terms: Sequence[str]) -> Lexical:
    """Score all rows against distinct terms."""
    scores: Floats = np.zeros(len(corpus), np.float32)
    alive = corpus.alive.values
    size = len(corpus) - corpus.dead
    if not size:
        return Lexical(scores, 0.0)
    lengths = corpus.lengths.values
    average = float(lengths[alive].mean() if corpus.dead else lengths.mean()) or 1.0
    norms = lengths * np.float32(K1 * B / average) + np.float32(K1 * (1 - B))
    ideal = 0.0
    for term in terms:
        rows, counts = corpus.postings.of(term)
        holding = int(alive[rows].sum()) if corpus.dead else len(rows)
        idf = math.log(1 + (size - holding + 0.5) / (holding + 0.5))
        ideal += idf
        scores[rows] += np.float32(idf * (K1 + 1)) * counts / (counts + norms[rows])
    if corpus.dead:
        scores[~alive] = 0.0
    return Lexical(scores, ideal)  # one occurrence at average length weighs idf * (K1 + 1) / (1 + K1)
