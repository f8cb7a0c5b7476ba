"""Several owners' indexes read as one, as if one owner had all the records.

Vectors and postings stay where they are; only the small columns (about 50 bytes a record) are copied, for one search.
So the records of an owner are in memory once, however many others read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.arrays import Column, Floats
from memory_core.retrieval.dense import Dense
from memory_core.retrieval.owner_index import NO_CODE, OwnerIndex
from memory_core.retrieval.postings import Frequencies, Postings

_NUMBERED: Final = frozenset({"sessions", "authors"})
"""The columns of names, which each index numbers in its own way."""

_Ints = NDArray[np.int64]
_Codes = Mapping[str | None, int]


def joined(parts: Sequence[OwnerIndex]) -> OwnerIndex:
    """The index of one or more owners together; see `JoinedIndex`."""
    return parts[0] if len(parts) == 1 else JoinedIndex(parts)


class JoinedIndex(OwnerIndex):
    """The rows of the indexes of different owners, one index after the other. Read only, and valid until one changes.

    Sessions of one name are one session, and authors of one name are one author.
    """

    def __init__(self, parts: Sequence[OwnerIndex]) -> None:
        super().__init__(parts[0].dimensions)
        self._parts = parts
        for name, column in vars(self).items():
            if isinstance(column, Column) and name not in _NUMBERED:
                _append(column, [getattr(part, name).values for part in parts])
        self.dead = sum(part.dead for part in parts)
        self._author_numbers = _common_numbers([part.author_codes for part in parts])
        session_numbers = _common_numbers([part.session_codes for part in parts])
        _append(self.sessions, _renumbered([part.sessions for part in parts], session_numbers))
        _append(self.authors, _renumbered([part.authors for part in parts], self._author_numbers))
        starts = np.cumsum([0, *map(len, parts)])
        self.postings = _JoinedPostings([part.postings for part in parts], starts)
        if self.dimensions is not None:
            self.dense = _JoinedDense(parts, starts, self.dimensions)

    @property
    def session_count(self) -> int:
        return sum(part.session_count for part in self._parts)

    def authors_named(self, words: Iterable[str]) -> dict[str, list[int]]:
        """See `OwnerIndex.authors_named`."""
        words, named = list(words), dict[str, list[int]]()
        for part, numbers in zip(self._parts, self._author_numbers, strict=True):
            for word, codes in part.authors_named(words).items():
                named.setdefault(word, []).extend(numbers[codes].tolist())
        return named


class _JoinedPostings(Postings):
    def __init__(self, parts: Sequence[Postings], starts: _Ints) -> None:
        super().__init__()
        self._parts, self._part_starts = parts, starts.tolist()

    def of(self, terms: Sequence[str]) -> list[Frequencies]:
        """See `Postings.of`."""
        found = [part.of(terms) for part in self._parts]
        return [
            (
                np.concatenate([rows + start for (rows, _), start in zip(each, self._part_starts, strict=False)]),
                np.concatenate([counts for _, counts in each]),
            )
            for each in zip(*found, strict=True)
        ]


class _JoinedDense(Dense):
    def __init__(self, parts: Sequence[OwnerIndex], starts: _Ints, dimensions: int) -> None:
        super().__init__(dimensions)
        self._parts = [(part.dense, len(part)) for part in parts if part.dense is not None]
        self._part_starts = starts

    def cosines(self, vector: Floats, size: int, spread: float = 0.0, nearest: int | None = None) -> Floats:  # noqa: ARG002
        """See `Dense.cosines`."""
        return np.concatenate([dense.cosines(vector, count, spread, nearest) for dense, count in self._parts])

    def first_of(self, row: int) -> Floats | None:
        """See `Dense.first_of`."""
        number = int(self._part_starts.searchsorted(row, "right")) - 1
        return self._parts[number][0].first_of(row - int(self._part_starts[number]))

    def cosines_of(self, vector: Floats, rows: _Ints) -> Floats:
        """See `Dense.cosines_of`."""
        cosines: Floats = np.empty(len(rows), np.float32)
        places = self._part_starts.searchsorted(rows, "right") - 1
        for number, (dense, _) in enumerate(self._parts):
            of_part = places == number
            cosines[of_part] = dense.cosines_of(vector, rows[of_part] - self._part_starts[number])
        return cosines


def _append(column: Column, arrays: Sequence[NDArray[np.generic]]) -> None:
    column.reserve(sum(map(len, arrays)))
    for array in arrays:
        column.extend(array)


def _common_numbers(parts: Sequence[_Codes]) -> list[_Ints]:
    """For each part, a number for each of its codes: equal for equal names, different for others."""
    numbers: list[_Ints] = []
    first = 0
    for place, codes in enumerate(parts):
        own = np.arange(first, first + len(codes))
        for earlier, numbered in zip(parts[:place], numbers, strict=True):
            for name in codes.keys() & earlier.keys():
                own[codes[name]] = numbered[earlier[name]]
        numbers.append(own)
        first += len(codes)
    return numbers


def _renumbered(columns: Sequence[Column], numbers: Sequence[_Ints]) -> list[NDArray[np.int32]]:
    """The codes of each part as common numbers; `NO_CODE` stays."""
    with_none = [np.append(own, NO_CODE).astype(np.int32) for own in numbers]  # -1 is the last place
    return [own[column.values] for column, own in zip(columns, with_none, strict=True)]
