"""The relevance of a record to a query itself, beside what chance and small talk would: one measure, in spreads.

The unit is that of the ranking (`ranking.py`). The strength is the evidence of the row alone, without neighbors and
preferences, where words count only if one of them can be a subject. The other two are what it
has to exceed: what the best of as many unrelated texts reaches by chance (`floor.py`), and how near the query is to
phrases of everyday talk. Both count as far as the embedder knows the language of the query.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from memory_core.models import Relevance
from memory_core.retrieval.arrays import ManyRows
from memory_core.retrieval.bm25 import words_in
from memory_core.retrieval.dense import chance
from memory_core.retrieval.floor import FEWEST, Evidence
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.retrieval.question import Query
from memory_core.retrieval.small_talk import telling

SPREADS: Final = 1.25
"""The distance by which an answer may stand below the best of as many unrelated texts, in spreads. At this value at
least 98 % of the questions of the development corpora are pushed an answer (`docs/measured.md`)."""
LEAST: Final = 0.5
"""Less evidence counts as no evidence, in any language."""


def relevances(
    owner_index: OwnerIndex, query: Query, evidence: Evidence, small_talk: float, rows: ManyRows, *, size: int
) -> list[Relevance]:
    """The relevance of some rows.

    Args:
        small_talk: The nearness of the query to the nearest phrase of small talk, in spreads.
        rows: Of the index.
        size: The number of rows that were compared.
    """
    strength = evidence.own[rows]
    subjects = telling(term for term in query.terms if term not in query.faint)
    if len(subjects) < len(query.terms):
        strength = strength - np.where(words_in(owner_index, subjects)[rows] > 0, 0, evidence.words[rows])
    by_chance = max(evidence.known * (chance(max(size, FEWEST)) - SPREADS), LEAST)
    everyday = evidence.known * small_talk
    return [Relevance(each, by_chance, everyday) for each in strength.tolist()]
