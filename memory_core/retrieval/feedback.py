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

from memory_core.retrieval.corpus import Corpus
from memory_core.retrieval.postings import TERM_MASK, firsts, hashes, unpack

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
        among: The rows that may be fed back or gain by it.
        known: The query's terms: they have had their say.
        pool_size: How many of the best rows are scored.

    Returns:
        Rows, and the sum of the weights of the terms each has; not scaled.
    """
    if len(among) > pool_size:
        among = among[np.argpartition(scores[among], -pool_size)[-pool_size:]]
    pool = among[np.argsort(-scores[among], kind="stable")]
    terms, holders = _terms_of(corpus, pool)
    starts = firsts(terms)
    votes = np.exp((scores[pool] - scores[pool[:1]]) / np.float32(TEMPERATURE))
    votes[FED_BACK:] = 0
    distinct = terms[starts]
    weights = np.add.reduceat(votes[holders], starts) if len(starts) else votes[:0]
    weights[np.isin(distinct, hashes(known))] = 0
    voted = np.flatnonzero(weights)
    weights[voted] *= _telling(corpus, distinct[voted])
    if len(voted) > TERMS:
        weights[weights < np.partition(weights, -TERMS)[-TERMS]] = 0
    each = np.repeat(weights, np.diff(starts, append=len(terms)))
    shared: Floats = np.bincount(holders, each, len(pool)).astype(np.float32)
    return pool, shared


def _terms_of(corpus: Corpus, pool: Rows) -> tuple[NDArray[np.uint64], Rows]:
    """The terms of some rows, ascending, and for each of them the place in `pool` of a row that has it, once."""
    packed = [corpus.terms[row] for row in pool]
    terms = unpack(packed)
    places = np.repeat(np.arange(len(pool), dtype=np.uint64), corpus.lengths.values[pool].astype(np.int64))
    pairs = terms | places
    pairs.sort()
    pairs = pairs[firsts(pairs)]
    return pairs & TERM_MASK, (pairs & ~TERM_MASK).astype(np.int64)


def _telling(corpus: Corpus, terms: NDArray[np.uint64]) -> Floats:
    """How rare each term is, as in BM25."""
    size, holding = len(corpus), corpus.postings.holding(terms)
    rarity: Floats = np.log(1 + (size - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    return rarity
