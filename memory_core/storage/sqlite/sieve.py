"""Records that Python has to look at, some at a time.

While Python looks at records, every other thread waits for the interpreter. So they are read in small parts, and looked
at in a thread that gives way to brief work (`Readers.sift`); meanwhile the connection is free for others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from memory_core.slices import give_way
from memory_core.storage.sqlite.where import Conditions

_PART: Final = 256
"""Records that are read at once,"""
_PART_CHARS: Final = 200_000
"""unless their texts and data are longer than this."""

Row = tuple[Any, ...]


class Sieve:
    """Finds out which of some records satisfy the conditions.

    Each part is read in a state of the file of its own. What is kept satisfied the conditions at some moment since the
    records were named; `still` says what does so in the state it sees.

    Args:
        columns: What the test looks at, in SQL, with its parameters.
        test: Of a row of these columns.
        keys: The records, in the order in which they are looked at.
        most: No more than these are kept.
    """

    def __init__(
        self,
        columns: str,
        parameters: Sequence[Any],
        test: Callable[[Row], bool],
        keys: Sequence[int],
        most: int | None = None,
    ) -> None:
        self._sql = (
            f"SELECT place, key, version, {columns} FROM (SELECT key AS place, value AS wanted FROM json_each(?)) "
            "CROSS JOIN record ON key = wanted"
        )
        self._parameters = parameters
        self._test = test
        self._keys = keys
        self._most = len(keys) if most is None else most
        self._next = 0
        self._kept: dict[int, int] = {}
        """The version of each record that was kept."""

    @classmethod
    def of(cls, found: Conditions, keys: Sequence[int], most: int | None = None) -> Sieve:
        """For what Python is asked about by these conditions."""
        assert found.asked is not None  # noqa: S101  (for type checkers: the caller has looked)
        return cls(found.asked.columns, found.asked.parameters, found.asked.test(), keys, most)

    @property
    def seen(self) -> int:
        """How many records were looked at."""
        return self._next

    @property
    def kept(self) -> list[int]:
        """The keys of the records that satisfy the conditions, in their order."""
        return list(self._kept)

    def read(self, db: sqlite3.Connection) -> list[Row]:
        """Some more records; none if that was all."""
        rows: list[Row] = []
        while not rows and self._next < len(self._keys) and len(self._kept) < self._most:
            first, chars = self._next, 0
            self._next = min(first + _PART, len(self._keys))
            for place, *row in self._ask(db, self._keys[first : self._next]):
                rows.append(tuple(row))
                chars += sum(len(value) for value in row if isinstance(value, str))
                if chars > _PART_CHARS:
                    self._next = first + place + 1
                    break
        return rows

    def look_at(self, rows: Sequence[Row]) -> None:
        """Keep those of the records read that satisfy the conditions."""
        for key, version, *row in rows:
            give_way()
            if self._test(tuple(row)):
                self._kept[key] = version
                if len(self._kept) == self._most:
                    self._next = self._keys.index(key) + 1
                    return

    def still(self, db: sqlite3.Connection) -> list[int]:
        """Those of the kept that satisfy the conditions in this state of the file; what changed is tested again."""
        rows = db.execute(
            "SELECT key, version FROM record WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(self.kept),)
        )
        same, changed = set[int](), list[int]()
        for key, version in rows:
            if self._kept[key] == version:
                same.add(key)
            else:
                changed.append(key)
        again = [(key, tuple(row)) for _, key, _, *row in self._ask(db, changed)]
        same.update(key for key, row in again if self._test(row))
        return [key for key in self._kept if key in same]

    def _ask(self, db: sqlite3.Connection, keys: Sequence[int]) -> Iterator[Row]:
        return iter(db.execute(self._sql, (*self._parameters, json.dumps(keys))) if keys else ())


def named(db: sqlite3.Connection, found: Conditions, order: str = "") -> list[int]:
    """The keys of the records that satisfy what SQLite decides; in one row, for Python would look at each of many."""
    (keys,) = db.execute(
        f"SELECT json_group_array(key) FROM (SELECT key FROM record WHERE {found.sql} {order} LIMIT -1)",
        found.parameters,
    ).fetchone()
    listed: list[int] = json.loads(keys)
    return listed
