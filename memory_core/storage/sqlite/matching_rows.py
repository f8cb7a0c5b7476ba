"""Which rows of an owner index satisfy the conditions of a search: asked of SQL once, then only of rows that are new.

A record that changes gets a new row in its owner index (`OwnerIndexes`), so what was found for older rows stays true.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Scope
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.storage.sqlite.readers import LONG_ROWS, Readers
from memory_core.storage.sqlite.sieve import Sieve, named
from memory_core.storage.sqlite.where import Conditions, conditions
from memory_core.where.meaning import names_any
from memory_core.where.value import Where

Rows = NDArray[np.int32]

KEPT_BYTES: Final = 4 * 1024 * 1024
"""What the answers of one owner may take: agents and graphs ask under the same conditions again and again."""
_ANSWER_BYTES: Final = 1_024
"""What an answer without any rows takes, roughly."""
_UNNOTED: Final = ("accessed_at", "access_count")
"""Reads count themselves without making a new row."""
_ALWAYS: Final = -1
"""A moment before every expiry; the ranking leaves out what has expired by then."""


class _Answer(NamedTuple):
    rows: Rows
    size: int
    """Of the owner index when it was asked."""

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + _ANSWER_BYTES


_NO_ANSWER: Final = _Answer(np.empty(0, np.int32), 0)


class Question(NamedTuple):
    """What satisfies these conditions, of some rows that an owner index had."""

    found: Conditions
    name: Hashable
    """Of the conditions on all records of the owner."""
    first: int
    """The first of the rows."""
    size: int
    """One more than the last of them."""

    async def keys(self, readers: Readers) -> list[int]:
        """The keys of all records that do."""
        connection = readers.brief if self.size - self.first <= LONG_ROWS else await readers.long()
        keys = await connection.run(lambda db: named(db, self.found))
        if self.found.asked is None:
            return keys
        sieve = Sieve.of(self.found, keys)
        await readers.sift(sieve)
        return sieve.kept


class MatchingRows:
    """The rows of one owner index, by condition; those asked for lately are remembered."""

    def __init__(self, owner_index: OwnerIndex) -> None:
        self._owner_index = owner_index
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self.nbytes = 0

    def rows(self, db: sqlite3.Connection, owner: int, scope: Scope, where: Where) -> Rows:
        """Ascending; rows that are dead by now and rows that have expired may be among them."""
        found = conditions(owner, scope, where, _ALWAYS)
        name, is_kept = found.name, not names_any(where.matching, _UNNOTED)
        answer = (self._answers.get(name) if is_kept or found.asked else None) or _NO_ANSWER
        if answer.size < len(self._owner_index):
            answer = _Answer(np.concatenate([answer.rows, self._since(db, found, answer.size)]), len(self._owner_index))
        if is_kept:
            self._keep(name, answer)
        else:
            self._drop(name)
        return answer.rows

    def unanswered(self, owner: int, scope: Scope, where: Where) -> Question | None:
        """What has to be asked of so many records that it takes long; `None` if the answer is known, or nearly so."""
        found, size = conditions(owner, scope, where, _ALWAYS), len(self._owner_index)
        name, is_kept = found.name, not names_any(where.matching, _UNNOTED)
        known = self._answers.get(name, _NO_ANSWER).size
        if size - known <= (LONG_ROWS if found.asked is None else 0) or not (is_kept or found.asked):
            return None  # a single text may take Python long
        first = known if is_kept else 0
        self._newer_only(found, first)
        return Question(found, name, first, size)

    def learn(self, question: Question, keys: Sequence[int]) -> None:
        """Remember which keys satisfy the conditions, in a state of the file at least as new as the question.

        A record that changed in between has a row by now that is newer than the question, and is asked about again.
        """
        name, row_of, size = question.name, self._owner_index.row_of, question.size
        known = self._answers.get(name, _NO_ANSWER) if question.first else _NO_ANSWER
        if known.size != question.first:
            return  # somebody else has learned something, or it was forgotten
        rows = np.sort(np.array([row for key in keys if (row := row_of.get(key, size)) < size], np.int32))
        self._keep(name, _Answer(np.concatenate([known.rows, rows]), size))

    def knows_few(self, owner: int, scope: Scope, where: Where, most: int, newest: int) -> bool:
        """Whether at most so many rows satisfy the conditions, as far as is remembered, and few are newer than that."""
        found = conditions(owner, scope, where, _ALWAYS)
        answer = self._answers.get(found.name)
        newest = 0 if found.asked else newest  # a single text can take long
        return answer is not None and len(answer.rows) <= most and len(self._owner_index) - answer.size <= newest

    def _keep(self, name: Hashable, answer: _Answer) -> None:
        self._drop(name)
        self._answers[name] = answer
        self.nbytes += answer.nbytes
        while self.nbytes > KEPT_BYTES and len(self._answers) > 1:
            self._drop(next(iter(self._answers)))

    def _drop(self, name: Hashable) -> None:
        older = self._answers.pop(name, None)
        self.nbytes -= 0 if older is None else older.nbytes

    def _since(self, db: sqlite3.Connection, found: Conditions, first: int) -> Rows:
        """The rows from `first` on."""
        self._newer_only(found, first)
        keys = named(db, found)
        if found.asked is not None:
            sieve = Sieve.of(found, keys)
            while rows := sieve.read(db):
                sieve.look_at(rows)
            keys = sieve.kept
        row_of = self._owner_index.row_of
        return np.sort(np.array([row_of[key] for key in keys], np.int32))

    def _newer_only(self, found: Conditions, first: int) -> None:
        """Leave out the records of the rows before `first`."""
        if first:
            found.add(
                "record.key IN (SELECT value FROM json_each(?))",
                json.dumps(self._owner_index.keys.values[first:].tolist()),
            )
