"""What a caller may ask of the ranking: which profile it follows, and whether recency and importance count.

| profile | for | what counts |
|---|---|---|
| `conversation` | turns, and anything else | all of `ranking.py` |
| `facts` | statements that stand alone | words, meaning, names and dates of the record; no neighbours, no length |
| `exact` | codes, names, quotations | only records that have every word of the query; no meaning, no neighbours |

Recency and importance are those of Park et al. 2023, "Generative Agents: Interactive Simulacra of Human Behavior",
section 4.2: a score that decays by a factor of 0.995 an hour, and the importance of 0 to 1 that a record was given;
each is added with the weight that the caller chooses. That paper counts from the last access, we from `occurred_at`, so
that reading changes no ranking. In conversations recency finds no more of the evidence (a bonus of 0.2 cost 0.8 points
of recall at 5 on the held-out conversations of LoCoMo, one of 0.05 0.2), and whether importance helps depends on who
gave it, so both are off unless asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.protocols import SearchRequest
from memory_core.retrieval.corpus import Corpus

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

DECAY_PER_HOUR: Final = 0.995
_HOUR: Final = 3_600_000_000
"""Microseconds."""


def preferences(
    corpus: Corpus, request: SearchRequest, importances: Floats | None, now: int
) -> list[tuple[str, Floats, float]]:
    """The components that the caller asked for: name, value of each row, weight.

    Args:
        importances: Of each row; not needed unless the request gives importance a weight.
        now: Microseconds since 1970 UTC.
    """
    found: list[tuple[str, Floats, float]] = []
    if request.recency:
        hours = np.maximum(now - corpus.occurred.values, 0) / _HOUR
        found.append(("recency", np.power(DECAY_PER_HOUR, hours).astype(np.float32), request.recency))
    if request.importance and importances is not None:
        found.append(("importance", importances, request.importance))
    return found


def holding_all(corpus: Corpus, terms: Sequence[str]) -> Mask:
    """The rows that have every one of these terms; none if there is no term."""
    held: NDArray[np.int64] = np.zeros(len(corpus), np.int64)
    for rows, _ in corpus.postings.of(terms):
        held[rows] += 1
    every: Mask = held == len(terms)
    return every if terms else np.zeros(len(corpus), np.bool_)
