"""Read one state of the file, or write with the lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from memory_core.storage.sqlite import lineage


@contextmanager
def snapshot(db: sqlite3.Connection) -> Generator[None]:
    """Read one state of the file until the block ends: a read transaction.

    A progress handler (`readers.py`) may interrupt any statement, and SQLite counts the steps of a prepared one on from
    call to call. So the beginning may be interrupted as well, after some thousands of reads; the end cannot be, because
    `commit` prepares a statement of its own.
    """
    try:
        db.execute("BEGIN")
        yield
    finally:
        db.commit()


@contextmanager
def transaction(db: sqlite3.Connection, *, alters_schema: bool = False) -> Generator[None]:
    """Write with the lock until the block ends, or not at all; if anything changed, the file gets its next mark.

    Args:
        alters_schema: The schema or its statistics change, which SQLite does not count as rows.
    """
    db.execute("BEGIN IMMEDIATE")
    changes = db.total_changes
    try:
        yield
        if alters_schema or db.total_changes != changes:
            lineage.stamp(db)
        db.execute("COMMIT")
    except BaseException:  # on any error: the next writer needs a connection without a transaction
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
