"""Arrays that grow: numpy views over storage that doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


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

    def extend(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        self.reserve(len(rows))
        size = self._size + len(rows)
        self._data[self._size : size] = rows
        self._size = size
