"""The largest of many numbers without sorting them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BLOCKS: Final = 64


def leading(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Positions, ascending, of some of the values, among them the `count` largest and everything equal to those.

    Of as many groups of values as are wanted each has one that is not below the smallest of the best groups' maxima:
    what lies below it is out. So two passes over the values do, and few are left to sort.

    Args:
        values: No NaN among them.
        count: At least 1.
    """
    width = len(values) // _BLOCKS
    if width < 4 * count:
        return np.arange(len(values))
    maxima = values[: _BLOCKS * width].reshape(_BLOCKS, width).max(axis=0)
    cut = np.partition(maxima, width - count)[width - count]
    return np.flatnonzero(values >= cut)
