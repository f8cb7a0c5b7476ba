"""Vector search: exact cosines of a query with all vectors of an owner.

If only the nearest rows are wanted and the `accel` extra (numkong) is installed, vectors are also stored as int8, a
quarter of the memory to read; the best by int8 are rescored with the float32 vectors, so that results are exact. If
every cosine counts, for neighboring turns and sessions, all are computed exactly: an int8 vector depends on the others
of its block, and so on earlier searches of the process.
"""

from __future__ import annotations

import importlib.util
import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.concurrency.cores import cores
from memory_core.concurrency.threads import mark_own_thread
from memory_core.retrieval.arrays import Column, Floats, leading

BLOCK: Final = 4_096
"""Vectors of one int8 block."""
SMALLEST_BLOCK: Final = 512
"""Fewer vectors are scanned as float32, which is as fast."""
PACKED_AT_ONCE: Final = 8
"""Blocks built by one search, about 30 ms: the first searches of a large owner share that work."""
SHARED_FROM: Final = 12
"""From this many blocks on, an idle second core takes a part; below, waking it costs as much as it saves."""
ON_ALL_CORES: Final = 16_384
"""From this many float32 vectors on, the scan uses all cores, although one may be busy."""
RESCORED: Final = 64
"""The number of the best by int8 that are rescored: at 100,000 vectors the exact ten best were always among them."""
_LARGEST: Final = 127
WORTH_GATHERING: Final = 8
"""Copying a scattered vector costs about as much as scanning this many in a row."""


def chance(count: int) -> float:
    """About how far the best of `count` unrelated texts stands above their mean, in spreads: sqrt(2 ln n).

    The leading term of the expected maximum of n normal variables (Cramer 1946, section 28.6).
    """
    return math.sqrt(2 * math.log(count)) if count > 1 else 0.0


class _Pieces(NamedTuple):
    """The positions of the vectors of each row."""

    rows: NDArray[np.int64]
    """The rows that have vectors."""
    starts: NDArray[np.int64]
    """The first vector of each of these rows."""
    handicaps: Floats
    """The amounts that are subtracted from the cosines, in spreads: nothing for the first vector of a row."""


class Dense:
    """Unit vectors, each belonging to a row; a row may have none, one or several."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._vectors = Column(np.float32, dimensions)
        self._rows = Column(np.int64)
        self._one_each = True
        self._pieces: _Pieces | None = None
        self._blocks: list[_Block] = []
        """Blocks of the first vectors, in order; all but the last are full."""
        self._scanned = 0
        """Number of vectors at the last scan."""
        self._second: ThreadPoolExecutor | None = None

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes + self._rows.nbytes + self._packed * self.dimensions

    @property
    def _packed(self) -> int:
        """Number of vectors in blocks."""
        return self._blocks[-1].stop if self._blocks else 0

    def reserve(self, count: int) -> None:
        """Reserve space for `count` more vectors; see `Column.reserve`."""
        self._vectors.reserve(count)
        self._rows.reserve(count)

    def extend(self, vectors: Floats, rows: Sequence[int]) -> None:
        """Append vectors and the rows they belong to, ascending."""
        first = len(self._rows)
        numbers = np.array(rows, np.int64)
        self._one_each = self._one_each and bool((numbers == np.arange(first, first + len(rows))).all())
        self._vectors.extend(vectors)
        self._rows.extend(numbers)
        self._pieces = None

    def cosines(self, vector: Floats, size: int, spread: float = 0.0, nearest: int | None = None) -> Floats:
        """The best cosine of each of `size` rows; NaN where a row has no vector.

        Args:
            spread: Spread of the cosines of unrelated texts. By chance alone the best of many chunks looks better than
                the only chunk of another text, so what the best of as many unrelated chunks would reach is subtracted
                from all chunks but the first; see `chance`. With 0 nothing is subtracted.
            nearest: The number of the best that must be exact, while the rest is approximate; `None` if all must be.
        """
        vectors = self._vectors.values
        is_few = nearest is not None and nearest * WORTH_GATHERING <= len(vectors)
        chunks = self._scan(vector, nearest or 0) if is_few else _all_products(vectors, vector)
        if self._one_each and len(chunks) == size:
            return chunks
        pieces = self._pieces_of_rows()
        if spread:
            chunks = chunks - np.float32(spread) * pieces.handicaps
        best: Floats = np.full(size, np.nan, np.float32)
        if len(chunks):
            best[pieces.rows] = np.maximum.reduceat(chunks, pieces.starts)
        return best

    def _pieces_of_rows(self) -> _Pieces:
        if self._pieces is None:
            rows = self._rows.values
            starts = np.flatnonzero(np.append(np.ones(min(1, len(rows)), np.bool_), rows[1:] != rows[:-1]))
            counts = np.diff(starts, append=len(rows))
            handicaps = np.sqrt(2 * np.log(counts)).astype(np.float32).repeat(counts)
            handicaps[starts] = 0
            self._pieces = _Pieces(rows[starts], starts, handicaps)
        return self._pieces

    def cosines_of(self, vector: Floats, rows: NDArray[np.int64]) -> Floats:
        """The best cosine of each of these rows alone; NaN where a row has no vector."""
        if self._one_each and (not len(rows) or rows.max() < len(self._rows)):
            return _products(self._vectors.values.take(rows, axis=0), vector)
        first = np.searchsorted(self._rows.values, rows, "left")
        counts = np.searchsorted(self._rows.values, rows, "right") - first
        owners = np.repeat(np.arange(len(rows)), counts)
        chunks = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        best: Floats = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(best, owners, _products(self._vectors.values.take(chunks, axis=0), vector))
        best[np.isneginf(best)] = np.nan
        return best

    def first_of(self, row: int) -> Floats | None:
        """The first vector of a row; `None` if it has none."""
        place = int(self._rows.values.searchsorted(row))
        has_one = place < len(self._rows) and self._rows.values[place] == row
        return self._vectors.values[place] if has_one else None

    def _scan(self, vector: Floats, nearest: int) -> Floats:
        vectors = self._vectors.values
        if len(vectors) < SMALLEST_BLOCK or not _has_numkong():
            return _all_products(vectors, vector)
        self._pack(vectors)
        scores: Floats = np.empty(len(vectors), np.float32)
        self._scan_blocks(vector, scores)
        if self._packed < len(vectors):
            scores[self._packed :] = _all_products(vectors[self._packed :], vector)
        best = leading(scores, max(RESCORED, 2 * nearest))
        scores[best] = _products(vectors[best], vector)
        return scores

    def _pack(self, vectors: Floats) -> None:
        """Build blocks of vectors that were scanned before, so that a single search does not wait for them.

        The last block is rebuilt whenever it can be full or twice as large.
        """
        for _ in range(PACKED_AT_ONCE):
            last = self._blocks[-1] if self._blocks and self._blocks[-1].size < BLOCK else None
            first = last.first if last else self._packed
            count = min(self._scanned - first, BLOCK)
            if count < min(2 * last.size if last else SMALLEST_BLOCK, BLOCK):
                break
            self._blocks[len(self._blocks) - bool(last) :] = [_Block(vectors[first : first + count], first)]
        self._scanned = len(vectors)

    def _scan_blocks(self, vector: Floats, scores: Floats) -> None:
        query, scale = _quantised(vector[None])
        left = deque(self._blocks)

        def scan() -> None:
            while left:
                try:
                    block = left.popleft()
                except IndexError:  # the other thread was faster
                    return
                block.dot(query, scale, scores)

        helping = self._helper().submit(scan) if len(left) >= SHARED_FROM and cores() > 1 else None
        scan()
        if helping is not None and not helping.cancel():
            helping.result()

    def _helper(self) -> ThreadPoolExecutor:
        """A second thread; numkong releases the interpreter lock. The thread ends with this object."""
        if self._second is None:
            self._second = ThreadPoolExecutor(1, "memory-core scan", mark_own_thread)
        return self._second


class _Block:
    """The vectors from `first` to `stop`, exclusive, as int8 in the layout of numkong."""

    def __init__(self, vectors: Floats, first: int) -> None:
        import numkong  # noqa: PLC0415  (an extra)

        self.first, self.stop, self.size = first, first + len(vectors), len(vectors)
        self._dots: Any = numkong.dots_packed
        small, self._scale = _quantised(vectors)
        self._packed: Any = numkong.dots_pack(small)

    def dot(self, query: NDArray[np.int8], scale: float, scores: Floats) -> None:
        """Write the products of the vectors with a query that was divided by `scale` to `scores`."""
        products = np.asarray(self._dots(query, self._packed))[0]
        np.multiply(products, np.float32(scale * self._scale), out=scores[self.first : self.stop])


def _all_products(vectors: Floats, vector: Floats) -> Floats:
    """The product of each vector with `vector`, on all cores if that is faster."""
    if len(vectors) < ON_ALL_CORES:
        return _products(vectors, vector)
    products: Floats = vectors @ vector
    return products


def _products(vectors: Floats, vector: Floats) -> Floats:
    """The product of each vector with `vector`, in this thread only.

    OpenBLAS spreads a matrix-vector product over all cores, and if one of them is busy the others wait for it: 2 ms of
    work for 10,000 vectors took 30 ms on a busy machine. For milliseconds after the product, its threads keep their
    cores busy waiting for more work.
    """
    products: Floats = np.matmul(vectors[:, None, :], vector[:, None])[:, 0, 0]
    return products


def _quantised(vectors: Floats) -> tuple[NDArray[np.int8], float]:
    """The vectors as int8, and the scale of one unit."""
    scale = float(np.abs(vectors).max()) / _LARGEST or 1.0
    return np.rint(vectors / np.float32(scale)).astype(np.int8), scale


@cache
def _has_numkong() -> bool:
    return importlib.util.find_spec("numkong") is not None
