"""A view of a file for other programs that read SQLite: readable columns, times in ISO 8601, the owner of each record.

Nothing in this package reads it. The tables behind it are internal; the view keeps its columns.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from memory_core.records.fields import FIELDS, OFFSET
from memory_core.storage.sqlite.connection import BUSY_MS
from memory_core.storage.sqlite.files import prepare_file
from memory_core.storage.sqlite.problems import file_problems_explained
from memory_core.storage.sqlite.transactions import transaction
from memory_core.storage.sqlite.where import SHOWN

VIEW: Final = "memories"


def _time(column: str) -> str:
    """Microseconds since 1970 as ISO 8601 in UTC; before 1970 the remainder is negative."""
    micros = f"((record.{column} % 1000000 + 1000000) % 1000000)"
    seconds = f"((record.{column} - {micros}) / 1000000)"
    return f"strftime('%Y-%m-%dT%H:%M:%S', {seconds}, 'unixepoch') || printf('.%06dZ', {micros}) AS {column}"


_SELECT: Final = ",\n    ".join(
    [
        "owner.app",
        "owner.user",
        *(_time(field.name) if field.form == "time" else f"record.{field.name}" for field in FIELDS),
        f"record.{OFFSET}",
    ]
)
_VIEW: Final = (
    f"CREATE VIEW {VIEW} AS SELECT\n    {_SELECT}\nFROM record JOIN owner ON owner.id = record.owner\nWHERE {SHOWN}"
)


def add_view(path: Path) -> str:
    """Add the view to a memory file, or replace an older one; returns the name of the view.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: The file cannot be used.
    """
    real = prepare_file(path)
    with (
        file_problems_explained(f"the memory file {real!r}"),
        closing(sqlite3.connect(real, isolation_level=None, timeout=BUSY_MS / 1000)) as db,
    ):
        known = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (VIEW,)).fetchone()
        if known is None or known[0] != _VIEW:
            with transaction(db, alters_schema=True):
                db.execute(f"DROP VIEW IF EXISTS {VIEW}")
                db.execute(_VIEW)
    return VIEW
