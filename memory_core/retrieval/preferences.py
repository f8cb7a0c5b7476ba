"""Ranking preferences beside relevance: recency, importance, and records that contain every word.

Recency and importance are those of Park et al. 2023, "Generative Agents: Interactive Simulacra of Human Behavior",
section 4.2: a score that decays by a factor of 0.995 an hour, and the importance of the record from 0 to 1. At a weight
of 1 each adds up to `SCALE`, about the difference between a good hit and a fair one. The paper counts from the last
access, this module from `occurred_at`, so that reads do not change rankings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.protocols import SearchRequest
from memory_core.retrieval.owner_index import OwnerIndex

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

DECAY_PER_HOUR: Final = 0.995
SCALE: Final = 10.0
"""What recency and importance add at most at a weight of 1, in units of the score; 1 in searches by cosine alone."""
_HOUR: Final = 3_600_000_000
"""Microseconds."""


def preferences(
    owner_index: OwnerIndex, request: SearchRequest, importances: Floats | None, now: int
) -> list[tuple[str, Floats, float]]:
    """The components that the request gives a weight: name, value of each row, weight.

    Args:
        importances: The importance of each row; needed only if the request gives importance a weight.
        now: Microseconds since 1970 UTC.
    """
    scale = 1.0 if request.mode == "vector" else SCALE
    found: list[tuple[str, Floats, float]] = []
    if request.recency:
        hours = np.maximum(now - owner_index.occurred.values, 0) / _HOUR
        found.append(("recency", np.power(DECAY_PER_HOUR, hours).astype(np.float32), scale * request.recency))
    if request.importance and importances is not None:
        found.append(("importance", importances, scale * request.importance))
    return found


def rows_with_all(owner_index: OwnerIndex, terms: Sequence[str]) -> Mask:
    """The rows that contain all of these terms; no rows if there are no terms."""
    matching: NDArray[np.int64] = np.zeros(len(owner_index), np.int64)
    for rows, _ in owner_index.postings.of(terms):
        matching[rows] += 1
    every: Mask = matching == len(terms)
    return every if terms else np.zeros(len(owner_index), np.bool_)
