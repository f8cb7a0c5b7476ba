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
from memory_core.storage.sqlite.readers import LONG_ROWS, calls_python
from memory_core.storage.sqlite.where import Conditions, conditions
from memory_core.where.meaning import names_any
from memory_core.where.value import Where

Rows = NDArray[np.int32]

KEPT_BYTES: Final = 4 * 1024 * 1024
"""What the answers of one owner may take: agents and graphs ask under the same conditions again and again."""
_ANSWER_BYTES: Final = 1_024
"""What an answer without any rows takes, roughly."""
FEW_ROWS: Final = 16
"""Rows that Python is asked about in no time; more of them take long if their texts do."""
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


class Question(NamedTuple):
    """What satisfies these conditions, of the rows that an owner index had."""

    found: Conditions
    size: int

    def keys(self, db: sqlite3.Connection) -> list[int]:
        """The keys of all records that do; for any connection."""
        return [key for (key,) in db.execute(f"SELECT key FROM record WHERE {self.found.sql}", self.found.parameters)]


class MatchingRows:
    """The rows of one owner index, by condition; those asked for lately are remembered."""

    def __init__(self, owner_index: OwnerIndex) -> None:
        self._owner_index = owner_index
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self.nbytes = 0

    def rows(self, db: sqlite3.Connection, owner: int, scope: Scope, where: Where) -> Rows:
        """Ascending; rows that are dead by now and rows that have expired may be among them."""
        found = conditions(owner, scope, where, _ALWAYS)
        if names_any(where.matching, _UNNOTED):
            return self._since(db, found, 0)
        name = (found.sql, *found.parameters)
        answer = self._answers.get(name) or _Answer(np.empty(0, np.int32), 0)
        if answer.size < len(self._owner_index):
            answer = _Answer(np.concatenate([answer.rows, self._since(db, found, answer.size)]), len(self._owner_index))
        self._keep(name, answer)
        return answer.rows

    def unanswered(self, owner: int, scope: Scope, where: Where) -> Question | None:
        """What has to be asked of so many records that it takes long; `None` if the answer is known, or nearly so."""
        found = conditions(owner, scope, where, _ALWAYS)
        answer = self._answers.get((found.sql, *found.parameters))
        known = 0 if answer is None else answer.size
        new = len(self._owner_index) - known
        if new <= (FEW_ROWS if calls_python(where) else LONG_ROWS) or names_any(where.matching, _UNNOTED):
            return None
        return Question(found, len(self._owner_index))

    def learn(self, question: Question, keys: Sequence[int]) -> None:
        """Remember which keys satisfy the conditions, in a state of the file at least as new as the question.

        A record that changed in between has a row by now that is newer than the question, and is asked about again.
        """
        row_of, size = self._owner_index.row_of, question.size
        rows = np.sort(np.array([row for key in keys if (row := row_of.get(key, size)) < size], np.int32))
        self._keep((question.found.sql, *question.found.parameters), _Answer(rows, size))

    def knows_few(self, owner: int, scope: Scope, where: Where, most: int, newest: int) -> bool:
        """Whether at most so many rows satisfy the conditions, as far as is remembered, and few are newer than that."""
        found = conditions(owner, scope, where, _ALWAYS)
        answer = self._answers.get((found.sql, *found.parameters))
        return answer is not None and len(answer.rows) <= most and len(self._owner_index) - answer.size <= newest

    def _keep(self, name: Hashable, answer: _Answer) -> None:
        older = self._answers.pop(name, None)
        self._answers[name] = answer
        self.nbytes += answer.nbytes - (older.nbytes if older else 0)
        while self.nbytes > KEPT_BYTES and len(self._answers) > 1:
            self.nbytes -= self._answers.popitem(last=False)[1].nbytes

    def _since(self, db: sqlite3.Connection, found: Conditions, size: int) -> Rows:
        """The rows from `size` on."""
        if size:
            found.add(
                "record.key IN (SELECT value FROM json_each(?))",
                json.dumps(self._owner_index.keys.values[size:].tolist()),
            )
        row_of = self._owner_index.row_of
        keys = db.execute(f"SELECT key FROM record WHERE {found.sql}", found.parameters)
        return np.sort(np.array([row_of[key] for (key,) in keys], np.int32))
