"""Re-analyse texts in the background after an upgrade; until then searches use the old terms.

`meta` records the version of the analysis and the key from which rows still have an older one. Every batch is one
transaction, so an interrupted run continues where it stopped, and several processes can share the work.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from typing import Final

from memory_core.errors import StorageError, reason_for_log
from memory_core.retrieval.analysis import ANALYSIS
from memory_core.retrieval.features import features
from memory_core.storage.sqlite import meta
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.owners import note_changes, owner_names
from memory_core.storage.sqlite.schema import NAME_OF_ANALYSIS, note_analysis

logger = logging.getLogger(__name__)

ANALYSED_AT_ONCE: Final = 200
"""Records per transaction, which blocks other writers for about 20 ms."""
PAUSE_SECONDS: Final = 0.05
"""Pause between two batches, for searches and writes."""

_FIRST: Final = 1
"""The version of files without an entry."""


class Reanalysis:
    """The background task. Runs on the core loop."""

    def __init__(self, writer: Writer) -> None:
        self._task = asyncio.create_task(_run(writer), name="memory-core reanalysis")

    async def close(self) -> None:
        """Stop; the next process that opens the file continues."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def is_due(db: sqlite3.Connection) -> bool:
    """True if rows have an older analysis; `False` if a newer version of the library has begun to replace it."""
    version, following = progress(db)
    return version < ANALYSIS or (version == ANALYSIS and following is not None)


def renew(db: sqlite3.Connection) -> bool:
    """Analyse the next batch, inside a write transaction; returns whether more batches follow."""
    if not is_due(db):
        return False
    version, following = progress(db)
    start = following if version == ANALYSIS else 0
    query = f"SELECT {COLUMNS}, owner, key FROM record WHERE key >= ? ORDER BY key LIMIT ?"
    rows = db.execute(query, (start, ANALYSED_AT_ONCE)).fetchall()
    changed: dict[int, list[int]] = {}
    for *row, owner, key in rows:
        found = features(to_record(tuple(row), *owner_names(db, owner)))
        columns = (found.packed, found.flags, found.words)
        if db.execute("SELECT terms, flags, words FROM lexical WHERE key = ?", (key,)).fetchone() != columns:
            db.execute("INSERT OR REPLACE INTO lexical VALUES (?, ?, ?, ?)", (key, *columns))
            changed.setdefault(owner, []).append(key)
    for owner, keys in changed.items():
        note_changes(db, owner, keys)
    is_last = len(rows) < ANALYSED_AT_ONCE
    note_analysis(db, None if is_last else rows[-1][-1] + 1)
    return not is_last


def progress(db: sqlite3.Connection) -> tuple[int, int | None]:
    """The version, and the key from which rows do not have it yet; `None` if all have it."""
    value = meta.get(db, NAME_OF_ANALYSIS)
    version, following = (_FIRST, None) if value is None else json.loads(str(value))
    return version, following


async def _run(writer: Writer) -> None:
    try:
        while await writer.write(renew):  # noqa: ASYNC110  (a pause for others; nothing is waited for)
            await asyncio.sleep(PAUSE_SECONDS)
    except StorageError as error:
        logger.warning(
            "some texts stay analysed as an older version did, until the file is opened again: %s",
            reason_for_log(error),
        )
