"""Types of arrays, arrays that grow (numpy views over storage that doubles), and the largest values of an array.

This package calls numpy's methods instead of its functions of the same names, which are Python wrappers: a search of a
thousand records makes about two hundred calls, and the wrappers would take much of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

Floats = NDArray[np.float32]
"""Scores, cosines or the numbers of vectors."""
Rows = NDArray[np.int64]
"""Numbers of rows of an owner index."""
ManyRows = NDArray[np.integer[Any]]
"""Numbers of rows, in integers of any size."""
Numbers = NDArray[Any] | Sequence[int]
"""Numbers of any type, which a column converts to its own."""


class Column:
    """A growing array of rows, read as one numpy view."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._data: NDArray[Any] = np.empty((0, *self._shape), dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    @property
    def values(self) -> NDArray[Any]:
        """The rows so far; a view, valid until the next `extend`."""
        return self._data[: self._size]

    def reserve(self, count: int) -> None:
        """Reserve space for `count` more rows, so that appending them in parts copies nothing."""
        size = self._size + count
        if size > len(self._data):
            grown = np.empty((max(size, 2 * len(self._data), 16), *self._shape), self._data.dtype)
            grown[: self._size] = self.values
            self._data = grown

    def extend(self, rows: Numbers) -> None:
        """Append rows."""
        self.reserve(len(rows))
        size = self._size + len(rows)
        self._data[self._size : size] = rows  # converts them
        self._size = size


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


def best(
    values: NDArray[np.float32], times: NDArray[np.int64], keys: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Positions of the `count` largest values, largest first; of equals the earlier, then that of the smaller key.

    Values that agree in `DIGITS` decimal places are equal: further digits depend on the order of summation, and the
    order of hits must not.
    """
    if not len(values):
        return np.arange(0)
    rounded = np.round(values, DIGITS)
    places = leading(rounded, count)
    order: NDArray[np.int64] = places[np.lexsort((keys[places], times[places], -rounded[places]))[:count]]
    return order
