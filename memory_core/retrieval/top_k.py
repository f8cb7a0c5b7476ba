"""Find the largest of many numbers without sorting all of them.

This package calls numpy's methods instead of its functions of the same names, which are Python wrappers: a search of a
thousand records makes about two hundred calls, and the wrappers would take much of its time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BLOCKS: Final = 64
DIGITS: Final = 4
"""Decimal places of a score that count in comparisons."""


def leading(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Positions, ascending, of some of the values: the `count` largest, all values equal to those, and maybe others.

    The values are divided into groups, and the `count`-th largest maximum of a group is a lower bound for the values
    wanted. So two passes over the values suffice, and few are left to sort.

    Args:
        values: Numbers other than NaN.
        count: At least 1.
    """
    width = len(values) // _BLOCKS
    is_wide = width >= 4 * count
    of = values[: _BLOCKS * width].reshape(_BLOCKS, width).max(axis=0) if is_wide else values
    if len(of) <= count:
        return np.arange(len(values))
    of = of.copy()
    of.partition(len(of) - count)
    rows: NDArray[np.int64] = (values >= of[len(of) - count]).nonzero()[0]
    return rows


def best(values: NDArray[np.float32], keys: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Positions of the `count` largest values, largest first; of equals the one of the smaller key comes first.

    Values that agree in `DIGITS` decimal places are equal: further digits depend on the order of summation, and the
    order of hits must not.
    """
    if not len(values):
        return np.arange(0)
    rounded = np.round(values, DIGITS)
    places = leading(rounded, count)
    order: NDArray[np.int64] = places[np.lexsort((keys[places], -rounded[places]))[:count]]
    return order
