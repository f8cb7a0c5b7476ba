"""Keyword matching: BM25 with the statistics of one owner, as a share of the highest score the query can reach."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.arrays import Floats, Rows
from memory_core.retrieval.owner_index import OwnerIndex

K1: Final = 0.9
B: Final = 0.4
"""BM25 as Robertson and Zaragoza 2009, with the parameters Anserini found best for short passages."""
DOUBT: Final = 10.0
"""Damping of partial matches, in words of the query of average weight: a match that weighs much less may be chance; see
`Lexical.coverage`. The weight of a word grows with the owner's records (a name in one of five weighs 1.4, in one of a
thousand 6.5), and the damping with it, so a name counts as much in a small memory as in a large one."""

FAINT: Final = 0.01
"""Weight of a word that says nothing about the subject of the query, beside 1 for every other one."""


@dataclass(frozen=True, slots=True)
class Lexical:
    """The match of each row with the terms of a query."""

    scores: Floats
    """BM25; 0 for rows without any of the terms and for dead rows."""
    ideal: float
    """The score of a text of average length that has every term once, terms that no text has included."""
    lacking: Floats
    """The share of the query's terms, weighted by idf, that a row lacks: 0 for a row with all of them, else up to 1."""
    missing: Collection[str]
    """The terms that no live row has."""
    mean: float
    """The mean weight of the query's terms, of which a faint one counts as its share of a term."""

    def coverage(self, doubt: float = DOUBT) -> Floats:
        """The share of the query that each row covers: 0 for no term, about 1 for a row that has all of them.

        Terms are weighted by idf. A match of one word of several, such as "kind" of "What kind of car do I own?", is
        often chance, so the smaller the matching part, the more it is discounted; a row with all terms is not.

        Args:
            doubt: Strength of the discount, in words of the query; 0 for none, for searches by words alone.
        """
        if not self.ideal:
            return self.scores
        share = self.scores / np.float32(self.ideal)
        if doubt:
            share *= self.scores / (self.scores + np.float32(doubt * self.mean) * self.lacking + np.float32(1e-9))
        return share


def bm25(
    owner_index: OwnerIndex, terms: Sequence[str], faint: Collection[str] = (), share_of_faint: float = FAINT
) -> Lexical:
    """Score all rows against distinct terms.

    Args:
        faint: The terms that say nothing about the subject (`function_words.py`).
        share_of_faint: Their weight, beside 1 for every other term.
    """
    size, alive = owner_index.living, owner_index.alive.values
    if not size or not terms:
        return Lexical(np.zeros(len(owner_index), np.float32), 0.0, np.ones(len(owner_index), np.float32), terms, 0.0)
    norms = _norms(owner_index)
    ideal, count, missing = 0.0, 0.0, set[str]()
    found: list[tuple[NDArray[np.int64], Floats, float]] = []
    for term, (rows, counts) in zip(terms, owner_index.postings.of(terms), strict=True):
        holding = int(alive[rows].sum()) if owner_index.dead else len(rows)
        if not holding:
            missing.add(term)
        share = share_of_faint if term in faint else 1.0
        idf = share * math.log(1 + (size - holding + 0.5) / (holding + 0.5))
        count += share
        ideal += idf  # one occurrence at average length weighs idf * (K1 + 1) / (1 + K1)
        found.append((rows, counts, idf))
    scores, matched = _added_up(found, norms)
    if owner_index.dead:
        scores[~alive] = 0.0
    return Lexical(scores, ideal, np.maximum(1 - matched * np.float32(1 / ideal), 0), missing, ideal / count)


def _norms(owner_index: OwnerIndex) -> Floats:
    """The length normalisation of each row."""
    norms: Floats = owner_index.lengths.values * np.float32(K1 * B / owner_index.average_length) + np.float32(
        K1 * (1 - B)
    )
    return norms


def _added_up(found: Sequence[tuple[NDArray[np.int64], Floats, float]], norms: Floats) -> tuple[Floats, Floats]:
    """For each row, the sum of the weights of its terms and the sum of their idf."""
    rows = np.concatenate([rows for rows, _, _ in found])
    counts = np.concatenate([counts for _, counts, _ in found])
    weights = np.array([idf * (K1 + 1) for _, _, idf in found])
    sizes = [len(rows) for rows, _, _ in found]
    shares = counts / (counts + norms[rows])
    weights = weights.repeat(sizes)
    matched = np.bincount(rows, weights, len(norms)).astype(np.float32) * np.float32(1 / (K1 + 1))
    return np.bincount(rows, weights * shares, len(norms)).astype(np.float32), matched


def words_in(owner_index: OwnerIndex, terms: Sequence[str]) -> Rows:
    """For each row, how many of some distinct terms it has."""
    count: Rows = np.zeros(len(owner_index), np.int64)
    for rows, _ in owner_index.postings.of(terms):
        count[rows] += 1
    return count
