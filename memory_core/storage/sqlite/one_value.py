"""The limits of the values that one statement puts together from many rows.

One row with long values is read much faster than many short rows, but SQLite refuses a value that is longer than the
connection's limit (1 GB unless an application lowers it). So whatever puts values of many rows together does so in
parts, each far below that limit, however long the rows are. Lists of keys are not parted: an owner needs tens of
millions of records to reach the limit with them.
"""

from __future__ import annotations

import sqlite3


def longest_value(db: sqlite3.Connection) -> int:
    """Most bytes to put together in one value: a quarter of what the connection allows."""
    return db.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) // 4
