"""What the best rows have in common, for the good of rows that say it in other words than the query.

Pseudo-relevance feedback after the relevance model RM3 (Abdul-Jaleel et al., TREC 2004), restricted to the rows that
are in question anyway, so that its cost does not grow with the owner: the terms that tell the ten best rows from the
rest are weighed, and each of the best hundred rows is scored by how many of those it has. A question of a class
("which outdoor activities") so reaches the instances that only stand beside each other ("hiking", "camping").

A long row has a little of everything. So the vote of a row is shared out among its words, and what it has is taken for
its length: without that, documentation strings lose 5 points of recall at 5 by this rule where only words are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.corpus import Corpus
from memory_core.retrieval.postings import TERM_MASK, firsts, hashes, unpack
from memory_core.retrieval.top import best, leading

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

FED_BACK: Final = 10
"""From how many of the best rows the terms come; 3 to 20 find the same within half a point."""
TERMS: Final = 20
"""How many terms count; 10 to 50 find the same within half a point."""
TEMPERATURE: Final = 0.15
"""A row that scores this share of the best score less than the best one has a vote 1/e as strong."""
LEAST_BEST: Final = 0.05
"""The best score counts as this at least: it is not above 0 where the rows only speak against themselves."""
SHARED: Final = 0.75
"""How far the length of a row counts, 1 for wholly: the `b` of BM25 at its usual value. With vectors 0.5 to 1 find the
same of a conversation within half a point, and documentation strings are found the better the higher it is."""
POOL: Final = 100
"""How many of the best rows are scored at least; more change nothing."""
_BEGINNING_BITS: Final = 12
MIN_ROWS: Final = 50
"""An owner of fewer rows has too few to tell what its best have in common from what all have."""


def likeness(corpus: Corpus, scores: Floats, among: Mask, known: Sequence[str], pool_size: int) -> tuple[Rows, Floats]:
    """How much of what tells the best rows from the rest each of the best has.

    Args:
        scores: Of all rows.
        among: The rows that may be fed back or gain by it.
        known: The query's terms: they have had their say.
        pool_size: How many of the best rows are scored.

    Returns:
        Rows, best first, and the sum of the weights of the terms each has, for its length as in BM25; not scaled.
    """
    pool = best(scores, among, pool_size)
    if not len(pool):
        return pool, scores[pool]
    rows: list[int] = pool.tolist()
    held = unpack([corpus.terms[row] for row in rows])
    lengths = corpus.lengths.values[pool]
    places = np.arange(len(rows)).repeat(lengths.astype(np.int64))
    average = float(np.add.reduce(lengths)) / len(rows) or 1.0
    norms: Floats = np.float32(1 - SHARED) + lengths * np.float32(SHARED / average)
    fed_back = int(np.add.reduce(lengths[:FED_BACK]))
    votes = _votes(scores[pool[:FED_BACK]]) / norms[:FED_BACK]
    terms, weights = _in_common(corpus, held[:fed_back] | places[:fed_back].astype(np.uint64), votes, known)
    return pool, tally(held, places, terms, weights, len(rows)) / norms


def _votes(scores: Floats) -> Floats:
    """How much rows of these scores, the best first, have to say."""
    step = TEMPERATURE * max(float(scores[0]), LEAST_BEST)
    votes: Floats = np.exp((scores - scores[0]) / np.float32(step))
    return votes


def _in_common(
    corpus: Corpus, pairs: NDArray[np.uint64], votes: Floats, known: Sequence[str]
) -> tuple[NDArray[np.uint64], Floats]:
    """The most telling terms of some texts, ascending, and how telling each is.

    Args:
        pairs: Terms of which the free bits say which text; they are sorted here.
        votes: Of each text.
    """
    pairs.sort()
    pairs = pairs[firsts(pairs)]  # a term that a text repeats has one vote
    terms = pairs & TERM_MASK
    starts = firsts(terms)
    weights = np.add.reduceat(votes[pairs & ~TERM_MASK], starts) if len(starts) else votes[:0]
    terms = terms[starts]
    holding = corpus.postings.holding(terms)
    weights = weights * np.log((len(corpus) + 1) / (holding + 0.5)).astype(np.float32)
    weights[_places(terms, hashes(known))] = 0
    chosen = weights.nonzero()[0] if np.count_nonzero(weights) <= TERMS else leading(weights, TERMS)
    return terms[chosen], weights[chosen]


def tally(held: NDArray[np.uint64], texts: Rows, terms: NDArray[np.uint64], weights: Floats, size: int) -> Floats:
    """For each of `size` texts the sum of the weights of those terms that it holds, each counted once.

    Args:
        held: What the texts hold, in any order; `texts` says who holds it.
        terms: Ascending.
    """
    has = np.zeros((size, len(terms)), np.float32)
    begins = np.zeros(1 << _BEGINNING_BITS, np.bool_)
    begins[_beginnings(terms)] = True
    few = begins[_beginnings(held)].nonzero()[0]  # most are none of the terms, which their first bits show
    places = np.minimum(terms.searchsorted(held[few]), len(terms) - 1)
    same = terms[places] == held[few]
    has[texts[few[same]], places[same]] = 1
    sums: Floats = has @ weights
    return sums


def _beginnings(terms: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (terms >> np.uint64(64 - _BEGINNING_BITS)).view(np.int64)


def _places(terms: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where those of the wanted numbers stand that are among the terms, which ascend."""
    places = np.minimum(terms.searchsorted(wanted), max(len(terms) - 1, 0))
    return places[terms[places] == wanted] if len(terms) else places[:0]
