"""A question about the present is answered by the latest of like statements.

Invariant: the best statement and those like it exchange their scores, so that a later one is above an earlier one; no
other score changes, and nothing is found or lost by it. Likeness is the cosine of two records, so it takes
vectors. What one voice states at different times can be values of one thing; another voice corrects nothing. Talk among
people, where the later of two like turns goes on about the matter, and long texts, which have several subjects, are no
statements.

`ALIKE`, `SHARE`, `FALL` and `MOST_WORDS` are tuned on 17 corpora (`docs/measured.md`); the other numbers are choices.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.arrays import Floats, Rows
from memory_core.retrieval.cosine_scale import Leaned, Unrelated
from memory_core.retrieval.features import FROM_USER
from memory_core.retrieval.owner_index import NO_CODE, OwnerIndex

COMPARED: Final = 10
"""Number of best records that may be like the best one."""
ALIKE: Final = 0.42
"""Least likeness of two statements of one matter: 0 is that of unrelated texts, 1 that of equal ones."""
SHARE: Final = 0.9
"""Share of the best score that a statement as like as that needs."""
FALL: Final = 3.0
"""The speed at which that share falls as likeness grows: a correction names the matter, and not what is asked."""
MOST_WORDS: Final = 60
"""Number of words of the longest statement."""
STEP: Final = 0.001
"""By how much a later one is above an earlier one with the same score, in spreads."""


def exchanged(
    owner_index: OwnerIndex, unrelated: Unrelated, top: Rows, scores: Floats, leaned: Leaned | None = None
) -> tuple[Rows, Floats]:
    """The best statement and those like it, and what each gets in addition to its score.

    Args:
        top: The best rows, best first.
        scores: Their scores.
        leaned: The comparison of records where a ranking leans, and `unrelated` with them.
    """
    top, scores = top[:COMPARED], scores[:COMPARED]
    dense = owner_index.dense if len(top) > 1 and scores[0] > 0 else None
    if dense is None or (vector := dense.first_of(int(top[0]))) is None:
        return top[:0], scores[:0]
    occurred, voices = owner_index.occurred.values[top], owner_index.voices()[top]
    compared = vector if leaned is None else leaned.of(vector)
    with_itself = 1.0 if leaned is None else float(compared @ vector)
    likeness = dense.cosines_of(compared, top) - np.float32(unrelated.mean)
    likeness /= np.float32(with_itself - unrelated.mean)
    enough = (likeness >= ALIKE) & (scores >= (SHARE - FALL * (likeness - ALIKE)) * scores[0])
    like = enough & (voices == voices[0]) & _stated(owner_index, top)
    group, own = top[like], scores[like]
    if not like[0] or len(group) < 2:
        return top[:0], scores[:0]
    latest = np.argsort(-occurred[like], kind="stable")
    steps: Floats = np.arange(len(own), dtype=np.float32)
    steps *= np.float32(STEP)
    gained: Floats = own - own[latest] - steps
    return group[latest], gained


def _stated(owner_index: OwnerIndex, rows: Rows) -> NDArray[np.bool_]:
    """True if each row is a short text that is no turn, or the user's."""
    of_user = (owner_index.flags.values[rows] & FROM_USER) > 0
    is_turn: NDArray[Any] = owner_index.sessions.values[rows] != NO_CODE
    stated: NDArray[np.bool_] = (of_user | ~is_turn) & (owner_index.words.values[rows] <= MOST_WORDS)
    return stated
