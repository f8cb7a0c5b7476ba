"""A read transaction: everything inside sees one state of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def snapshot(db: sqlite3.Connection) -> Generator[None]:
    """Hold one state of the file until the block ends."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("COMMIT")
