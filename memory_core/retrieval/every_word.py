"""The records that have every word of a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.owner_index import OwnerIndex


def rows_with_all(owner_index: OwnerIndex, terms: Sequence[str]) -> NDArray[np.bool_]:
    """The rows that contain all of these terms; no rows if there are no terms."""
    matching: NDArray[np.int64] = np.zeros(len(owner_index), np.int64)
    for rows, _ in owner_index.postings.of(terms):
        matching[rows] += 1
    every: NDArray[np.bool_] = matching == len(terms)
    return every if terms else np.zeros(len(owner_index), np.bool_)
