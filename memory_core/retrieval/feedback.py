"""What the best rows have in common, for the good of rows that say it in other words than the query.

Pseudo-relevance feedback after the relevance model RM3 (Abdul-Jaleel et al., TREC 2004), restricted to the rows that
are in question anyway, so that its cost does not grow with the owner: the terms that tell the ten best rows from the
rest are weighed, and each of the best hundred rows is scored by how many of those it has. A question of a class
("which outdoor activities") so reaches the instances that only stand beside each other ("hiking", "camping").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.bm25 import B
from memory_core.retrieval.corpus import Corpus
from memory_core.retrieval.postings import TERM_MASK, firsts, hashes, unpack
from memory_core.retrieval.top import leading

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

FED_BACK: Final = 10
"""From how many of the best rows the terms come; 3 to 20 find the same within half a point."""
TERMS: Final = 20
"""How many terms count; 10 to 50 find the same within half a point."""
TEMPERATURE: Final = 0.3
"""A row this much below the best one has a vote 1/e as strong."""
POOL: Final = 100
"""How many of the best rows are scored at least; more change nothing."""
MIN_ROWS: Final = 50
"""An owner of fewer rows has too few to tell what its best have in common from what all have."""


def likeness(corpus: Corpus, scores: Floats, among: Rows, known: Sequence[str], pool_size: int) -> tuple[Rows, Floats]:
    """How much of what tells the best rows from the rest each of the best has.

    Args:
        scores: Of all rows.
        among: The rows that may be fed back or gain by it; not none.
        known: The query's terms: they have had their say.
        pool_size: How many of the best rows are scored.

    Returns:
        Rows, and the sum of the weights of the terms each has, for its length as in BM25; not scaled.
    """
    if len(among) > pool_size:
        among = among[leading(scores[among], pool_size)]
        among = among[np.argpartition(scores[among], -pool_size)[-pool_size:]]
    pool = among[np.argsort(-scores[among])]
    terms, weights = _in_common(corpus, pool[:FED_BACK], scores, known)
    lengths = corpus.lengths.values[pool]
    norms: Floats = np.float32(1 - B) + lengths * np.float32(B / (float(lengths.mean()) or 1.0))
    shared: Floats = corpus.postings.tally(terms, weights, len(corpus))[pool] / norms
    return pool, shared


def _in_common(corpus: Corpus, best: Rows, scores: Floats, known: Sequence[str]) -> tuple[NDArray[np.uint64], Floats]:
    """The most telling terms of the best rows, ascending, and how telling each is."""
    lengths = corpus.lengths.values[best].astype(np.int64)
    places = np.repeat(np.arange(len(best), dtype=np.uint64), lengths)
    rows: list[int] = best.tolist()
    pairs = np.sort(unpack([corpus.terms[row] for row in rows]) | places)
    pairs = pairs[firsts(pairs)]  # a term that a row repeats has one vote
    votes = np.exp((scores[best] - scores[best[0]]) / np.float32(TEMPERATURE))
    terms = pairs & TERM_MASK
    starts = firsts(terms)
    weights = np.add.reduceat(votes[pairs & ~TERM_MASK], starts) if len(starts) else votes[:0]
    terms = terms[starts]
    holding = corpus.postings.holding(terms)
    weights = weights * np.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    weights[(terms[:, None] == hashes(known)).any(axis=1)] = 0
    chosen = np.flatnonzero(weights)
    if len(chosen) > TERMS:
        chosen = np.flatnonzero(weights >= np.partition(weights, -TERMS)[-TERMS])
    return terms[chosen], weights[chosen]
