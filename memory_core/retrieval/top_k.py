"""The largest of many numbers without sorting them.

Here and in its neighbours numpy's methods are called rather than its functions of the same name, which are Python
around them: a search of a thousand records is some two hundred calls, and much of its time would go there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BLOCKS: Final = 64
DIGITS: Final = 4
"""Of a score, behind the point."""


def leading(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Positions, ascending, of some of the values, among them the `count` largest and everything equal to those.

    Of as many groups of values as are wanted each has one that is not below the smallest of the best groups' maxima:
    what lies below it is out. So two passes over the values do, and few are left to sort.

    Args:
        values: No NaN among them.
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

    Values that differ by less than `DIGITS` say are equal: what is behind differs with the order in which numbers were
    added up, and with it the order of hits would.
    """
    if not len(values):
        return np.arange(0)
    rounded = np.round(values, DIGITS)
    places = leading(rounded, count)
    order: NDArray[np.int64] = places[np.lexsort((keys[places], -rounded[places]))[:count]]
    return order
