"""The recency of a record, as a part of a score.

It is the recency of Park et al. 2023, "Generative Agents: Interactive Simulacra of Human Behavior", section 4.2, which
decays by a factor of 0.995 an hour. The paper counts from the last access, this module from `occurred_at`, so that
reads do not change rankings.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

DECAY_PER_HOUR: Final = 0.995
_HOUR: Final = 3_600_000_000
"""Microseconds."""


def recency(occurred: NDArray[np.int64], now: int) -> NDArray[np.float32]:
    """1 for what occurred now, falling by half a per cent with every hour; both in microseconds since 1970 UTC."""
    hours = np.maximum(now - occurred, 0) / _HOUR
    return np.power(DECAY_PER_HOUR, hours).astype(np.float32)
