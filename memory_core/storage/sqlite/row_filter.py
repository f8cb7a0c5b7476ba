"""Filter rows with conditions that Python decides, inside the snapshot of a read.

While Python tests rows, every other thread waits for the interpreter lock. So it yields to other work between two rows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from memory_core.concurrency.threads import yield_now
from memory_core.storage.sqlite.codec import SqlRow
from memory_core.storage.sqlite.where import Conditions

_PART: Final = 64
"""Records read at once; their texts are in memory together."""


class RowTest(NamedTuple):
    """A condition that Python decides."""

    columns: str
    """The SQL expressions that the test reads."""
    parameters: Sequence[Any]
    """Parameters of `columns`."""
    passes: Callable[[SqlRow], bool]
    """Decides on a row of these columns."""


def row_test(found: Conditions) -> RowTest | None:
    """The test for the conditions that Python decides; `None` if SQLite decides all of them."""
    decided = found.in_python
    return None if decided is None else RowTest(decided.columns, decided.parameters, decided.test())


def passing(db: sqlite3.Connection, test: RowTest, keys: Sequence[int], most: int | None = None) -> list[int]:
    """The keys of the records that pass a test, in the order of `keys`.

    Args:
        most: The number after which it stops; `None` for all.
    """
    sql = (
        f"SELECT key, {test.columns} FROM (SELECT key AS _place, value AS _wanted FROM json_each(?)) "
        "CROSS JOIN record ON key = _wanted ORDER BY _place"
    )
    found: list[int] = []
    for first in range(0, len(keys), _PART):
        part = json.dumps(keys[first : first + _PART])
        rows = db.execute(sql, (*test.parameters, part)).fetchall()
        for key, *row in rows:
            yield_now()
            if test.passes(tuple(row)):
                found.append(key)
                if len(found) == most:
                    return found
    return found


def matching_keys(db: sqlite3.Connection, found: Conditions, order: str = "", most: int | None = None) -> list[int]:
    """The keys of the records that satisfy the conditions, in this order; see `passing`."""
    (listed,) = db.execute(  # in one row, because many rows would be slow
        f"SELECT json_group_array(key) FROM (SELECT key FROM record WHERE {found.sql} {order} LIMIT -1)",
        found.parameters,
    ).fetchone()
    keys: list[int] = json.loads(listed)
    test = row_test(found)
    return keys if test is None else passing(db, test, keys, most)


def narrow(db: sqlite3.Connection, found: Conditions, order: str = "", most: int | None = None) -> None:
    """Replace the conditions that Python decides by the keys of the records that satisfy all conditions."""
    if found.in_python is not None:
        found.add("record.key IN (SELECT value FROM json_each(?))", json.dumps(matching_keys(db, found, order, most)))
