"""Which hits are relevant at all: the floor under a search.

Two questions are asked, both in spreads of the cosines of unrelated texts:

- Does the owner know anything about it? The best of n unrelated texts stands about sqrt(2 ln n) spreads above their
  mean by chance alone. The best record has to come near that; and nearer for each name in the query that nobody has
  ever mentioned.
- Does this record speak for itself, or through its neighbours? The stronger the best record is, the more the others
  have to show: beside one that says it word for word a chance likeness is no hit, where nothing is better it may be.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.dense import chance

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

LEAST_EVIDENCE: Final = -1.0
"""What a hit shows at least, in spreads, where the best has nothing to show."""
SHARE_OF_BEST: Final = 0.1
"""And so much of what the best shows beyond that."""
FEWEST: Final = 10
"""Fewer records than these are judged as if they were so many."""
SLACK: Final = 1.25
"""How far the best record may stay below what chance gives, in spreads. At this value 99 % of the answerable questions
of every development corpus keep their evidence; the curve is in `docs/retrieval.md`."""
UNKNOWN_NAME: Final = 1.5
"""What a name that the owner has no record of asks for beyond that, in spreads."""
MOST_UNKNOWN: Final = 2
"""So many of these names count."""


def is_answered(best: float, size: int, unknown_names: int = 0, known: float = 1.0) -> bool:
    """Whether the best of some records has more to say than chance.

    Args:
        best: Its evidence, in spreads.
        size: How many records were compared.
        unknown_names: How many names in the query are in no record.
        known: How far the embedder knows the query's language; where it does not, chance has no part in it.
    """
    if not size:
        return False
    return best > 0 and best >= known * (
        chance(max(size, FEWEST)) - SLACK + UNKNOWN_NAME * min(unknown_names, MOST_UNKNOWN)
    )


def stands_out(evidence: Floats) -> Mask:
    """The hits among records of an answered query."""
    best = float(evidence.max(initial=0.0))
    found: Mask = evidence > LEAST_EVIDENCE + SHARE_OF_BEST * best
    return found
