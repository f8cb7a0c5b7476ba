"""When nothing is relevant: the floor under a search.

The best of many unrelated texts looks better than the best of few, so the floor rises with the number of records. What
is compared with it is the evidence that the query is answered at all: the best cosine plus the best share of the
query's words that one text has.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.bm25 import Lexical

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

FLOOR: Final = 0.15
FLOOR_PER_DECADE: Final = 0.12
"""Evidence needed of an owner of one record, and for every ten times as many. Found on the development conversations of
LoCoMo: it turns away 0.6 % of their questions, and 83 % of 202 questions about something else."""

MIN_COSINE: Final = 0.2
"""Below it a text that shares no word with the query is not a match by itself."""


def matches(lexical: Lexical, cosines: Floats | None, alive: Mask | None) -> Mask:
    """The rows that match by themselves; none if no row is evidence enough that the query is answered at all.

    Args:
        alive: Rows that count; `None` for all.
    """
    found: Mask = lexical.scores > 0
    if cosines is None:
        return found
    nearest = float(np.maximum.reduce(cosines if alive is None else cosines[alive], initial=-1))
    if math.isnan(nearest):
        owed = np.isnan(cosines)
        if (found & owed).any():  # a text whose vector is owed has only its words to speak for it
            return found | above_floor(cosines)
        nearest = float(cosines[~owed if alive is None else alive & ~owed].max(initial=-1))
    living = len(found) if alive is None else np.count_nonzero(alive)
    if nearest + lexical.best_coverage < FLOOR + FLOOR_PER_DECADE * math.log10(max(living, 1)):
        return np.zeros(len(found), np.bool_)
    return found | above_floor(cosines)


def above_floor(cosines: Floats) -> Mask:
    """The rows whose meaning alone makes them a match; not those whose vector is owed (NaN)."""
    near: Mask = np.greater_equal(cosines, np.float32(MIN_COSINE))
    return near
