"""The in-memory index of one owner's records: everything the ranking reads, as columns.

An owner index is derived from the store and follows it: rows are appended, a row whose record changed or was deleted is
marked dead, and a changed record gets a new row.

Invariant: only live rows take part in a ranking, as hits, neighbors or statistics. The row of a record that a person
has left is dead, too, except in `with_left`. Term postings, vectors and the order of turns are updated with each
change, so that a search takes a few numpy operations over all rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice, repeat
from sys import getsizeof
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.arrays import Column, Floats, Numbers
from memory_core.retrieval.dense import Dense
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER, QUESTION
from memory_core.retrieval.postings import Postings
from memory_core.retrieval.unit_vectors import widened

_WORD: Final = re.compile(r"[^\W_]+")

AT_ONCE: Final = 1_024
"""Vectors that are copied together."""
NEVER: Final = int(np.iinfo(np.int64).max)
_MINUTE: Final = 60_000_000
_ROW_BYTES: Final = 100
"""Approximate bytes of a row: its columns, and its entry in `row_of`."""
_NAME_BYTES: Final = 100
"""Approximate bytes of the entry of an author or a session, without its name."""
FULL_WORDS: Final = 200
"""A turn of this many words gets nothing from its neighbors; the shorter a turn, the more it gets. Between 150 and 300
the results on the development corpora differ by a point."""
NO_CODE: Final = -1
"""Code of "no session" and "no author"."""
UNKNOWN_VOICE: Final = 16 * NO_CODE
"""The voice of a row without an author and without the role of a user or an assistant."""


class Entry(NamedTuple):
    """The fields of a record that the ranking reads. Times are microseconds since 1970 UTC."""

    key: int
    terms: bytes
    """See `term_hashes.pack`."""
    flags: int
    """The flags of `features.py`, that of the role included."""
    words: int
    session: str | None
    """The session of a turn; `None` for other records, see `kinds.is_message`."""
    author: str | None
    occurred_at: int
    expires_at: int | None
    active: bool
    offset: int = 0
    """The number of minutes by which the clocks where it occurred are ahead of UTC."""
    left: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """The fields of `Entry` for many records, column by column."""

    keys: NDArray[np.int64]
    terms: bytes
    """The terms of all records, one after the other."""
    sizes: NDArray[np.int64]
    """The number of bytes of them that belong to each record."""
    flags: Numbers
    words: Numbers
    sessions: Sequence[str | None]
    authors: Sequence[str | None]
    occurred: Numbers
    expires: Sequence[int | None]
    active: Numbers
    offsets: Numbers
    left: Numbers

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Entries:
        """Convert one or more entries to columns."""
        keys, terms, *others = zip(*entries, strict=True)
        sizes = np.fromiter(map(len, terms), np.int64, len(terms))
        return cls(np.array(keys, np.int64), b"".join(terms), sizes, *others)


@dataclass(frozen=True, slots=True)
class Turns:
    """The live turns in order of session, time and arrival."""

    order: NDArray[np.int64] | None
    """The row of each turn; `None` if the turns are all rows in their order."""
    starts: NDArray[np.int64]
    """The row at which each session begins, and the number of its turns."""
    counts: NDArray[np.int64]
    from_before: NDArray[np.float32]
    """For each turn but the first, its weight for the turn before it, from 0 to 1: higher for shorter turns, and 0
    unless the turn before it asks a question in the same session, and somebody else did."""
    from_after: NDArray[np.float32]
    """For each turn but the last, its weight for the turn after it, from 0 to 1; 0 after a turn of the same author."""

    def of(self, values: Floats) -> Floats:
        """The values of the turns, of those of all rows."""
        return values if self.order is None else values[self.order]

    def spread(self, values: Floats, size: int) -> Floats:
        """The values of all rows, 0 for those that are no turns, of those of the turns."""
        if self.order is None:
            return values
        spread: Floats = np.zeros(size, np.float32)
        spread[self.order] = values
        return spread


class OwnerIndex:
    """The searchable columns of one owner. Not thread-safe: only one connection's thread uses it."""

    def __init__(self, dimensions: int | None) -> None:
        self.dimensions = dimensions
        self.row_of: dict[int, int] = {}
        self.keys = Column(np.int64)
        self.alive = Column(np.bool_)
        self.left = Column(np.bool_)
        """The dead rows whose records a person has left."""
        self.active = Column(np.bool_)
        self.flags = Column(np.uint8)
        self.words = Column(np.float32)
        self.lengths = Column(np.float32)
        self.sessions = Column(np.int32)
        self.authors = Column(np.int32)
        self.occurred = Column(np.int64)
        self.offsets = Column(np.int16)
        self.expires = Column(np.int64)
        self.dense = None if dimensions is None else Dense(dimensions)
        self.author_codes: dict[str | None, int] = {}
        """The number of each author in `authors`, from 0 on."""
        self._called: dict[str, list[int]] = {}
        self.dead = 0
        self.session_codes: dict[str | None, int] = {}
        """The number of each session in `sessions`, from 0 on."""
        self._name_bytes = 0
        """Of the names of authors and sessions."""
        self.postings = Postings()
        self._turns: Turns | None = None

    def __len__(self) -> int:
        """Number of rows, dead ones included."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes: vectors dominate, postings are counted by their terms."""
        vectors = self.dense.nbytes if self.dense else 0
        return vectors + self.postings.nbytes + _ROW_BYTES * len(self) + self._name_bytes

    @property
    def session_count(self) -> int:
        return len(self.session_codes)

    @property
    def living(self) -> int:
        """Rows that are not dead."""
        return len(self) - self.dead

    @property
    def average_length(self) -> float:
        """Mean number of terms of a live row; 1 if none has terms."""
        lengths = self.lengths.values
        living = lengths[self.alive.values] if self.dead else lengths
        return float(np.mean(living, dtype=np.float64)) or 1.0  # float64: any order

    def present(self, now: int) -> NDArray[np.bool_]:
        """True for each row that is neither dead nor expired at `now`."""
        present: NDArray[np.bool_] = self.alive.values & (self.expires.values > now)
        return present

    def authors_named(self, words: Iterable[str]) -> dict[str, list[int]]:
        """The given lower-case words that name an author of a live row, with the codes of those authors."""
        called = {word: self._called[word] for word in words if word in self._called}
        alive, authors = self.alive.values, self.authors.values
        codes = {word: [code for code in some if (alive & (authors == code)).any()] for word, some in called.items()}
        return {word: some for word, some in codes.items() if some}

    def extend(self, entries: Sequence[Entry], vectors: Iterable[tuple[int, bytes]]) -> None:
        """Append entries; an entry whose key is known replaces the older row.

        Args:
            entries: Entries with distinct keys.
            vectors: Key and float16 vector of each chunk, in the order of the entries; pending ones are left out. They
                are consumed a few at a time: memory once allocated for all of them would stay with the process.
        """
        if entries:
            self.extend_by_columns(Entries.of(entries), _joined(vectors, self.dense))

    def extend_by_columns(self, entries: Entries, vectors: Iterable[tuple[Sequence[int], Floats]]) -> None:
        """`extend` for many entries; vectors come in groups, as the keys and the rows of each group."""
        first, size = len(self), len(entries.keys)
        keys: list[int] = entries.keys.tolist()
        if self.row_of:
            self.remove(keys)
        self.row_of.update(zip(keys, range(first, first + size), strict=True))
        self.keys.extend(entries.keys)
        left = np.asarray(entries.left, np.bool_)
        self.alive.extend(~left)
        self.left.extend(left)
        self.dead += int(np.count_nonzero(left))
        self.active.extend(entries.active)
        self.flags.extend(entries.flags)
        self.words.extend(entries.words)
        self.sessions.extend(self._codes(entries.sessions, self.session_codes))
        self.authors.extend(self._codes(entries.authors, self.author_codes))
        self._note_names()
        self.occurred.extend(entries.occurred)
        self.offsets.extend(entries.offsets)
        self.expires.extend(_moments(entries.expires))
        self.lengths.extend(self.postings.extend(first, entries.terms, entries.sizes))
        if self.dense is not None:
            self._extend_dense(self.dense, size, vectors)
        self._turns = None

    def _extend_dense(self, dense: Dense, expected: int, vectors: Iterable[tuple[Sequence[int], Floats]]) -> None:
        reserved = 0
        for keys, rows in vectors:
            dense.reserve(max(expected - reserved, len(keys)))
            reserved = expected
            dense.extend(rows, [self.row_of[key] for key in keys])

    def remove(self, keys: Iterable[int]) -> None:
        """Mark the rows of these keys dead; unknown keys are ignored."""
        for key in keys:
            row = self.row_of.pop(key, None)
            if row is not None and self.left.values[row]:
                self.left.values[row] = False
            elif row is not None:
                self.dead += 1
                self.alive.values[row] = False
                self._turns = None

    @property
    def removed(self) -> int:
        """Rows that no search reads any more."""
        return self.dead - int(np.count_nonzero(self.left.values))

    def with_left(self) -> OwnerIndex:
        """The same index in which what was left is live, for one search: to read, until this one changes."""
        if self.removed == self.dead:
            return self
        whole = copy(self)
        whole.alive, whole.left = Column(np.bool_), Column(np.bool_)
        whole.alive.extend(self.alive.values | self.left.values)
        whole.left.extend(np.zeros(len(self), np.bool_))
        whole.dead = self.removed
        whole._turns = None  # noqa: SLF001  (its own)
        return whole

    def local_times(self) -> NDArray[np.int64]:
        """The time at which each row occurred, on the clocks of its place: microseconds since 1970 there."""
        return self.occurred.values + self.offsets.values.astype(np.int64) * _MINUTE

    def voices(self) -> NDArray[np.int64]:
        """The speaker in each row, as a number: an author, or a user or an assistant without a name."""
        roles = self.flags.values & (FROM_USER | FROM_ASSISTANT)
        voices: NDArray[np.int64] = 16 * self.authors.values.astype(np.int64) + roles
        return voices

    def turns(self) -> Turns:
        """See `Turns`."""
        if self._turns is None:
            self._turns = self._sorted_turns()
        return self._turns

    def _codes(self, values: Sequence[str | None], codes: dict[str | None, int]) -> NDArray[np.int32]:
        """The code of each value; new values get new codes, `None` gets `NO_CODE`."""
        for value in dict.fromkeys(values):
            if value is not None and value not in codes:
                codes[value] = len(codes)
                self._name_bytes += getsizeof(value) + _NAME_BYTES
        return np.fromiter(map(codes.get, values, repeat(NO_CODE)), np.int32, len(values))

    def _note_names(self) -> None:
        known = sum(map(len, self._called.values()))
        for author, code in list(self.author_codes.items())[known:]:
            self._called.setdefault(first_name(author or ""), []).append(code)

    def _sorted_turns(self) -> Turns:
        sessions = self.sessions.values
        rows = np.flatnonzero(self.alive.values & (sessions >= 0))
        order = rows[np.lexsort((self.keys.values[rows], self.occurred.values[rows], sessions[rows]))]
        ordered = sessions[order]
        is_followed = ordered[1:] == ordered[:-1]
        voices = self.voices()[order]
        is_answered = is_followed & ((voices[1:] != voices[:-1]) | (voices[1:] == UNKNOWN_VOICE))
        starts = np.flatnonzero(np.append(np.ones(min(1, len(order)), np.bool_), ~is_followed))
        unsaid = np.maximum(1 - self.words.values[order] / np.float32(FULL_WORDS), 0).astype(np.float32)
        asks = (self.flags.values[order] & QUESTION) > 0
        is_whole = len(order) == len(self) and bool((order[1:] > order[:-1]).all())
        return Turns(
            order=None if is_whole else order,
            starts=starts,
            counts=np.diff(starts, append=len(order)),
            from_before=unsaid[1:] * (is_answered & asks[:-1]),
            from_after=unsaid[:-1] * is_answered,
        )


def first_name(author: str) -> str:
    """The name by which a question calls an author: the first word, lower-case ("ann" of "Ann Lee" or "ann@host")."""
    found = _WORD.search(author)
    return found[0].lower() if found else author.lower()


def _moments(expires: Sequence[int | None]) -> NDArray[np.int64]:
    return np.fromiter((NEVER if moment is None else moment for moment in expires), np.int64, len(expires))


def _joined(vectors: Iterable[tuple[int, bytes]], dense: Dense | None) -> Iterator[tuple[list[int], Floats]]:
    left = iter(vectors)
    while dense is not None and (some := list(islice(left, AT_ONCE))):
        yield [key for key, _ in some], widened(b"".join([blob for _, blob in some])).reshape(-1, dense.dimensions)
