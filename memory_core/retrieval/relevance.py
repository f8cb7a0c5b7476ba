"""The relevance floor: decide which hits of a search are relevant at all.

There are two tests, both in spreads of the cosines of unrelated texts:

- Does the owner know anything about the query? The best of n unrelated texts stands about sqrt(2 ln n) spreads above
  their mean by chance alone. The best record has to come close to that, and closer for each name in the query that no
  record mentions.
- Is a record relevant by itself or through its neighbors? The stronger the best record, the more evidence the others
  need: beside a literal match a chance similarity is not a hit; without a better record it may be.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.dense import chance

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

LEAST_EVIDENCE: Final = -1.0
"""Least evidence of a hit, in spreads, if the best record has none."""
SHARE_OF_BEST: Final = 0.1
"""Share of the best record's evidence beyond that which a hit needs in addition."""
FEWEST: Final = 10
"""Fewer records than this are judged as if they were this many."""
SLACK: Final = 1.25
"""How far the best record may stay below what chance gives, in spreads. At this value 99 % of the answerable questions
of every development corpus keep their evidence; the curve is in `docs/retrieval.md`."""
UNKNOWN_NAME: Final = 1.5
"""Additional evidence needed for each name that is in no record, in spreads."""
MOST_UNKNOWN: Final = 2
"""At most this many such names count."""


def is_answered(best: float, size: int, unknown_names: int = 0, known: float = 1.0) -> bool:
    """Whether the evidence of the best record is stronger than chance.

    Args:
        best: Its evidence, in spreads.
        size: How many records were compared.
        unknown_names: How many names in the query are in no record.
        known: How far the embedder knows the query's language; the less it does, the less the chance level counts.
    """
    if not size:
        return False
    return best > 0 and best >= known * (
        chance(max(size, FEWEST)) - SLACK + UNKNOWN_NAME * min(unknown_names, MOST_UNKNOWN)
    )


def stands_out(evidence: Floats) -> Mask:
    """The records that are hits, if the query is answered."""
    best = float(evidence.max(initial=0.0))
    found: Mask = evidence > LEAST_EVIDENCE + SHARE_OF_BEST * best
    return found
