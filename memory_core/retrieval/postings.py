"""An inverted index in memory: the rows that contain a term, and how often.

A term is represented by 40 bits of its hash: the terms of a text are then a few bytes that need no dictionary and no
parsing, and a term and a row together fit into one 64-bit number, so that sorting numbers builds the index. Among
100,000 different terms, a query term collides with another one once in ten million times.

Rows added in bulk are sorted into one base, where a term is a slice of two arrays; rows added one by one are kept in a
small list per term until the next bulk.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.term_hashes import HASH_OF, TERM_BYTES

_ROW_BITS: Final = 64 - 8 * TERM_BYTES
_PADDING: Final = bytes(8 - TERM_BYTES)
MAX_ROWS: Final = 1 << _ROW_BITS
"""Maximum number of rows of one owner, dead ones included: 16.8 million."""
_ROW_MASK: Final = np.uint64(MAX_ROWS - 1)
TERM_MASK: Final = ~_ROW_MASK
"""The bits of a number of `unpack` that identify the term; the others are free."""
_REBUILD_SHARE: Final = 4
"""Recent rows are sorted into the base once they amount to this fraction (1/4) of it; until then they are in lists."""

Frequencies = tuple[NDArray[np.int64], NDArray[np.float32]]


class Postings:
    """The rows, ascending, and counts of each term. Rows can only be appended."""

    def __init__(self) -> None:
        self._terms: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._starts: NDArray[np.int64] = np.empty(0, np.int64)
        """For each term, its start in the next two arrays and its number of rows."""
        self._sizes: NDArray[np.int64] = np.empty(0, np.int64)
        self._rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._counts: NDArray[np.float32] = np.empty(0, np.float32)
        self._recent: dict[int, tuple[array[int], array[float]]] = {}
        self._recent_size = 0

    @property
    def nbytes(self) -> int:
        base = self._terms.nbytes + 2 * self._starts.nbytes + self._rows.nbytes + self._counts.nbytes
        return base + 16 * self._recent_size + 200 * len(self._recent)

    def extend(self, first_row: int, packed: bytes, sizes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Index texts as rows from `first_row` on; returns the number of terms of each.

        Args:
            packed: The packed terms of all texts, one after the other.
            sizes: The number of bytes of them that are those of each text.
        """
        if first_row + len(sizes) > MAX_ROWS:
            raise OverflowError(f"an owner has at most {MAX_ROWS} records")
        lengths, terms = sizes // TERM_BYTES, unpack(packed)
        if (len(terms) + self._recent_size) * _REBUILD_SHARE >= len(self._rows):
            self._sort_in(terms | np.repeat(np.arange(first_row, first_row + len(sizes), dtype=np.uint64), lengths))
        else:
            ends = np.cumsum(lengths)
            for row, stop, length in zip(range(first_row, MAX_ROWS), ends.tolist(), lengths.tolist(), strict=False):
                self._append(row, terms[stop - length : stop].tolist())
        return lengths.astype(np.float32)

    def of(self, terms: Sequence[str]) -> list[Frequencies]:
        """For each term, the rows that contain it, ascending, and its count in each."""
        numbers = hashes(terms)
        starts, sizes = self._slices(numbers)
        found = [
            (self._rows[start : start + size], self._counts[start : start + size])
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]
        if not self._recent:
            return found
        return [self._with_recent(number, *old) for number, old in zip(numbers.tolist(), found, strict=True)]

    def _slices(self, terms: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The start of each term's rows in the base, and their number."""
        if not len(self._terms):
            return np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
        places = np.minimum(self._terms.searchsorted(terms), len(self._terms) - 1)
        return self._starts[places], self._sizes[places] * (self._terms[places] == terms)

    def _with_recent(self, number: int, rows: NDArray[np.int64], counts: NDArray[np.float32]) -> Frequencies:
        recent = self._recent.get(number)
        if recent is None:
            return rows, counts
        recent_rows, recent_counts = np.array(recent[0], np.int64), np.array(recent[1], np.float32)
        return np.concatenate([rows, recent_rows]), np.concatenate([counts, recent_counts])

    def _append(self, row: int, terms: Sequence[int]) -> None:
        for term, times in Counter(terms).items():
            rows, counts = self._recent.setdefault(term, (array("q"), array("f")))
            rows.append(row)
            counts.append(times)
        self._recent_size += len(terms)

    def _sort_in(self, new: NDArray[np.uint64]) -> None:
        """Merge the base, the recent rows and the new numbers into a new base."""
        terms = np.repeat(self._terms, self._sizes)
        old = np.repeat(terms | self._rows.astype(np.uint64), self._counts.astype(np.int64))
        recent = [
            np.repeat(np.array(rows, np.uint64) | np.uint64(term), np.array(counts, np.int64))
            for term, (rows, counts) in self._recent.items()
        ]
        pairs = np.concatenate([old, *recent, new])
        pairs.sort()
        distinct = firsts(pairs)
        self._counts = np.diff(distinct, append=len(pairs)).astype(np.float32)
        pairs = pairs[distinct]
        self._rows = (pairs & _ROW_MASK).astype(np.int64)
        self._starts = firsts(pairs & TERM_MASK)
        self._sizes = np.diff(self._starts, append=len(pairs))
        self._terms = pairs[self._starts] & TERM_MASK
        self._recent.clear()
        self._recent_size = 0


def hashes(terms: Iterable[str]) -> NDArray[np.uint64]:
    """The numbers that `unpack` returns for these terms."""
    return unpack(b"".join([HASH_OF[term] for term in terms]))


def unpack(packed: bytes) -> NDArray[np.uint64]:
    """The packed terms as numbers whose lower bits are free for a row."""
    count = len(packed) // TERM_BYTES
    overlapping: NDArray[np.uint64] = np.ndarray(count, "<u8", packed + _PADDING, strides=(TERM_BYTES,))
    return overlapping << np.uint64(_ROW_BITS)  # shifts out the bytes of the next term


def firsts(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The position of the first of each run of equal numbers."""
    changes = np.empty(len(ordered), np.bool_)
    changes[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    places: NDArray[np.int64] = changes.nonzero()[0]
    return places
