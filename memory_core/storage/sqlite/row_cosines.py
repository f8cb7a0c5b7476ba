"""The cosines of a query with the rows of an owner index: what the ranking reads, and what a hit shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.requests import SearchRequest
from memory_core.retrieval.arrays import Floats
from memory_core.retrieval.dense import WORTH_GATHERING, Dense
from memory_core.retrieval.features import OTHER_LANGUAGE
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.retrieval.ranking import Cosines, candidates
from memory_core.storage.shared.query_vector import Vector


def row_cosines(
    owner_index: OwnerIndex,
    vector: Vector | None,
    request: SearchRequest,
    *,
    now: int,
    allowed: NDArray[np.integer[Any]] | None,
) -> Cosines | None:
    """The cosines that the ranking of a request needs; `None` without a vector. See `ranking.rank`."""
    dense = owner_index.dense
    if dense is None or vector is None:
        return None
    size = len(owner_index)
    if request.mode != "vector":
        return vector.cosines(_leaned_values(dense, vector, owner_index))
    rows = candidates(owner_index, allowed, now)  # no score depends on others, so only these are read
    if len(rows) * WORTH_GATHERING < size:
        values = np.full(size, np.nan, np.float32)
        values[rows] = dense.cosines_of(vector.ranked.vector, rows)
    else:
        values = dense.cosines(vector.ranked.vector, size, nearest=size - len(rows) + request.limit)
    return vector.cosines(values)


def _leaned_values(dense: Dense, vector: Vector, owner_index: OwnerIndex) -> Floats:
    """The cosine of each row, of texts in other languages on the scale of the others."""
    size, ranked, others = len(owner_index), vector.ranked, vector.others
    values = dense.cosines(ranked.vector, size, ranked.unrelated.spread)
    is_other = (owner_index.flags.values & OTHER_LANGUAGE) > 0
    if others is None or not is_other.any():
        return values
    other_values = dense.cosines(others.vector, size, others.unrelated.spread)
    return np.where(is_other, ranked.unrelated.taken_from(others.unrelated, other_values), values)


def similarities(
    owner_index: OwnerIndex,
    vector: Vector | None,
    cosines: Cosines | None,
    request: SearchRequest,
    rows: NDArray[np.int64],
) -> list[float | None]:
    """The best cosine of each row as a hit shows it, from 0 to 1; `None` where a vector is pending."""
    if owner_index.dense is None or vector is None or cosines is None:
        return [None] * len(rows)
    is_shown = request.mode == "vector"  # elsewhere with handicaps, and of a query that may lean
    found = cosines.values[rows] if is_shown else owner_index.dense.cosines_of(vector.values, rows)
    values: list[float] = found.tolist()
    return [None if math.isnan(cosine) else min(max(cosine, 0.0), 1.0) for cosine in values]
