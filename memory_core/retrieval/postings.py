"""Which rows contain a term, and how often: an inverted index in memory.

Rows that come in bulk are sorted into one base, where a term is a slice of two arrays; rows that come one by one are
kept in a small list per term until the next bulk.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

_ROW_BITS: Final = 32
_ROW_MASK: Final = (1 << _ROW_BITS) - 1
_REBUILD_SHARE: Final = 4
"""A batch of at least this fraction (1/4) of what is held is sorted in; smaller ones are appended term by term."""

Found = tuple[NDArray[np.int64], NDArray[np.int64]]


class Postings:
    """Rows ascending and counts by term. Rows are only ever appended."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, int] = defaultdict(count().__next__)
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._counts: NDArray[np.int64] = np.empty(0, np.int64)
        self._recent: dict[int, tuple[array[int], array[int]]] = {}

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._counts.nbytes + self._starts.nbytes + 200 * len(self._ids)

    def extend(self, first_row: int, texts: Sequence[str]) -> NDArray[np.float32]:
        """Index texts (terms separated by spaces) as rows from `first_row` on; returns how many terms each has."""
        lists = [text.split() for text in texts]
        lengths = np.array([len(terms) for terms in lists], np.int64)
        total = int(lengths.sum())
        if total * _REBUILD_SHARE >= len(self._rows):
            ids = np.fromiter((self._ids[term] for terms in lists for term in terms), np.int64, total)
            rows = np.repeat(np.arange(first_row, first_row + len(lists)), lengths)
            self._sort_in(ids << _ROW_BITS | rows)
        else:
            for row, terms in enumerate(lists, first_row):
                self._append(row, terms)
        return lengths.astype(np.float32)

    def of(self, term: str) -> Found:
        """Rows that contain `term`, ascending, and how often each does."""
        number = self._ids.get(term, -1)  # not [term], which would make it known
        rows, counts = self._base(number)
        recent = self._recent.get(number)
        if recent is None:
            return rows, counts
        return np.concatenate([rows, np.array(recent[0])]), np.concatenate([counts, np.array(recent[1])])

    def _base(self, number: int) -> Found:
        if not 0 <= number < len(self._starts) - 1:
            return self._rows[:0], self._counts[:0]
        here = slice(self._starts[number], self._starts[number + 1])
        return self._rows[here], self._counts[here]

    def _append(self, row: int, terms: Sequence[str]) -> None:
        for term, times in Counter(terms).items():
            rows, counts = self._recent.setdefault(self._ids[term], (array("q"), array("q")))
            rows.append(row)
            counts.append(times)

    def _sort_in(self, new: NDArray[np.int64]) -> None:
        """Make a new base of everything; a pair of term and row is one number, so that one sort does it."""
        terms = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        recent = [
            np.repeat(np.array(rows) | number << _ROW_BITS, np.array(counts))
            for number, (rows, counts) in self._recent.items()
        ]
        pairs = np.concatenate([np.repeat(terms << _ROW_BITS | self._rows, self._counts), *recent, new])
        pairs.sort()
        firsts = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]])) if len(pairs) else pairs
        self._counts = np.diff(np.append(firsts, len(pairs)))
        self._rows = pairs[firsts] & _ROW_MASK
        self._starts = np.searchsorted(pairs[firsts] >> _ROW_BITS, np.arange(len(self._ids) + 1))
        self._recent.clear()
