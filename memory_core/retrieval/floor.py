"""The relevance floor: which of the ranked rows are hits.

Two tests decide, in the unit of the scores (`ranking.py`):

- Does the owner know anything about the query? The best of n unrelated texts stands about sqrt(2 ln n) spreads above
  their mean by chance alone. The best record has to come close to that, and closer for each name in the query that no
  record mentions.
- Is a record relevant by itself or through its neighbors? The stronger the best record, the more evidence the others
  need: beside a literal match a chance similarity is not a hit; without a better record it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.arrays import Floats, Rows
from memory_core.retrieval.bm25 import Lexical
from memory_core.retrieval.dense import chance
from memory_core.retrieval.question import Query

Mask = NDArray[np.bool_]

LEAST_EVIDENCE: Final = -1.0
"""Minimum evidence of a hit, in spreads, if the best record has none."""
SHARE_OF_BEST: Final = 0.1
"""Share of the best record's evidence beyond that which a hit needs in addition."""
FEWEST: Final = 10
"""Fewer records than this are judged as if they were this many."""
SLACK: Final = 2.0
"""The distance by which the best record may stay below what chance gives, in spreads. At this value at most one
answerable question in two hundred finds nothing, on every corpus; the curve is in `docs/measured.md`."""
UNKNOWN_NAME: Final = 1.5
"""Additional evidence needed for each name that is in no record, in spreads."""
MAX_UNKNOWN: Final = 2
"""Maximum number of such names that count."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for each row, before components that depend on its kind only."""

    own: Floats
    """Evidence of the row alone, with the person and the date that the query names."""
    in_context: Floats
    """Evidence of the row and its neighbors."""
    words: Floats
    """The part of the evidence of the row that comes from words."""
    evident: Floats
    """The degree to which the evidence of the row, its neighbors and its session reaches the level of chance, from 0
    to 1."""
    lexical: Lexical
    z: Floats | None
    """Spreads above the mean of unrelated texts; NaN where a vector is pending."""
    known: float
    """The weight of the cosine: how far the embedder knows the words of the query."""


def relevant(query: Query, evidence: Evidence, rows: Rows, *, in_context: bool) -> Rows:
    """The rows that are hits, by themselves or, with `in_context`, together with their neighbors."""
    matched, z = evidence.in_context if in_context else evidence.own, evidence.z
    if z is None:
        return rows[matched[rows] > 0]
    found = rows[stands_out(matched[rows])]
    pending = np.isnan(z[found])
    if (pending & (evidence.lexical.scores[found] > 0)).any():
        return found  # a text whose vector is pending is judged by its words
    unknown = len(query.proper.intersection(evidence.lexical.missing)) if evidence.known >= 1 else 0
    strongest = float(evidence.own[rows].max(initial=-np.inf))
    return found if is_answered(strongest, len(rows), unknown, evidence.known) else found[:0]


def is_answered(best: float, size: int, unknown_names: int = 0, known: float = 1.0) -> bool:
    """True if the evidence of the best record is stronger than chance.

    Args:
        best: Its evidence, in spreads.
        size: The number of records that were compared.
        unknown_names: The number of names in the query that are in no record.
        known: The degree to which the embedder knows the query's language; the less it does, the less the chance level
            counts.
    """
    if not size:
        return False
    return best > 0 and best >= known * (
        chance(max(size, FEWEST)) - SLACK + UNKNOWN_NAME * min(unknown_names, MAX_UNKNOWN)
    )


def stands_out(evidence: Floats) -> Mask:
    """The records that are hits, if the query is answered."""
    best = float(evidence.max(initial=0.0))
    found: Mask = evidence > LEAST_EVIDENCE + SHARE_OF_BEST * best
    return found
