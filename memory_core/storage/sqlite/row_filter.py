"""Filter rows with conditions that Python decides, a small part at a time.

While Python tests rows, every other thread waits for the interpreter lock. So rows are read in small parts and tested
in a thread that yields to short work (`Readers.run_filter`); meanwhile the connection is free for other reads.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from memory_core.concurrency.threads import yield_now
from memory_core.storage.sqlite.codec import SqlRow
from memory_core.storage.sqlite.where import Conditions

_PART: Final = 256
"""Most records read in one part."""
_FEW_TESTS: Final = 10
"""Tests of one record with which a part may be as large."""
_PART_CHARS: Final = 200_000
"""Characters of text and data after which a part ends early."""


class RowFilter:
    """Finds out which of the given records satisfy the conditions.

    Each part is read from its own state of the file. A kept record satisfied the conditions at some moment after
    `keys` was read; `recheck` returns the records that satisfy them in the state it reads.

    Args:
        columns: The SQL expressions that the test reads.
        parameters: Parameters of `columns`.
        test: Decides on a row of these columns.
        keys: The keys of the records, in the order in which they are tested.
        most: Keep at most this many records; `None` for all.
        tests: What SQLite has to do for the columns of one record; a part has the fewer records the more that is.
    """

    def __init__(
        self,
        columns: str,
        parameters: Sequence[Any],
        test: Callable[[SqlRow], bool],
        keys: Sequence[int],
        most: int | None,
        tests: int,
    ) -> None:
        self._sql = (
            f"SELECT _place, key, version, {columns} FROM (SELECT key AS _place, value AS _wanted FROM json_each(?)) "
            "CROSS JOIN record ON key = _wanted"
        )
        self._parameters = parameters
        self._test = test
        self._keys = keys
        self._most = len(keys) if most is None else most
        self._part = max(_PART * _FEW_TESTS // max(tests, _FEW_TESTS), 1)
        self._next = 0
        self._kept: dict[int, int] = {}
        """The version of each kept record, by key."""

    @classmethod
    def for_conditions(cls, found: Conditions, keys: Sequence[int], most: int | None = None) -> RowFilter:
        """Make the filter for the conditions that Python decides."""
        assert found.in_python is not None  # noqa: S101  (for type checkers: the caller has checked)
        decided = found.in_python
        return cls(decided.columns, decided.parameters, decided.test(), keys, most, decided.tests)

    @property
    def seen(self) -> int:
        """The number of records that were tested."""
        return self._next

    @property
    def kept(self) -> list[int]:
        """The keys of the records that satisfy the conditions, in the order of `keys`."""
        return list(self._kept)

    @property
    def versions(self) -> dict[int, int]:
        """The version of each of them when it was tested, by key."""
        return dict(self._kept)

    def read(self, db: sqlite3.Connection) -> list[SqlRow]:
        """Read the next rows; an empty list at the end."""
        rows: list[SqlRow] = []
        while not rows and self._next < len(self._keys) and len(self._kept) < self._most:
            first, chars = self._next, 0
            self._next = min(first + self._part, len(self._keys))
            for place, *row in self._select(db, self._keys[first : self._next]):
                rows.append(tuple(row))
                chars += sum(len(value) for value in row if isinstance(value, str))
                if chars > _PART_CHARS:
                    self._next = first + place + 1
                    break
        return rows

    def check(self, rows: Sequence[SqlRow]) -> None:
        """Keep the rows that satisfy the conditions."""
        for key, version, *row in rows:
            yield_now()
            if self._test(tuple(row)):
                self._kept[key] = version
                if len(self._kept) == self._most:
                    self._next = self._keys.index(key) + 1
                    return

    def recheck(self, db: sqlite3.Connection) -> list[int]:
        """The kept records that satisfy the conditions in this state of the file; changed records are tested again."""
        rows = db.execute(
            "SELECT key, version FROM record WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(self.kept),)
        )
        same, changed = set[int](), list[int]()
        for key, version in rows:
            if self._kept[key] == version:
                same.add(key)
            else:
                changed.append(key)
        again = [(key, tuple(row)) for _, key, _, *row in self._select(db, changed)]
        same.update(key for key, row in again if self._test(row))
        return [key for key in self._kept if key in same]

    def _select(self, db: sqlite3.Connection, keys: Sequence[int]) -> Iterator[SqlRow]:
        return iter(db.execute(self._sql, (*self._parameters, json.dumps(keys))) if keys else ())


def matching_keys(db: sqlite3.Connection, found: Conditions, order: str = "") -> list[int]:
    """The keys of the records that satisfy the SQL conditions, fetched as one row because many rows would be slow."""
    (keys,) = db.execute(
        f"SELECT json_group_array(key) FROM (SELECT key FROM record WHERE {found.sql} {order} LIMIT -1)",
        found.parameters,
    ).fetchone()
    listed: list[int] = json.loads(keys)
    return listed


def narrow(db: sqlite3.Connection, found: Conditions, row_filter: RowFilter | None) -> None:
    """Add the result of a filter to the conditions that it was made for."""
    if row_filter is not None:
        found.add("record.key IN (SELECT value FROM json_each(?))", json.dumps(row_filter.recheck(db)))
    elif found.in_python is not None:  # the owner was created after the filter was made
        found.add("FALSE")
