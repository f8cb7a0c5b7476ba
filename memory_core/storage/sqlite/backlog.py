"""Vectors that are owed: computed in the background, in batches, until none is left.

A vector is owed when a record was added with `embed="later"`, when the embedder failed, or when the turn before it
changed, went, or arrived late. Meanwhile the record is found by its words.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterable
from functools import partial
from typing import Final

from memory_core.encoding import encode_json
from memory_core.errors import EmbeddingError, StorageError, reason_for_log
from memory_core.models import Fingerprint
from memory_core.protocols import Embedder
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.fingerprints import insist
from memory_core.storage.sqlite.owners import note_changes
from memory_core.storage.sqlite.prepared import embed, pieces_to_embed
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.snapshot import snapshot
from memory_core.storage.sqlite.writer import Writer

logger = logging.getLogger(__name__)

BATCH: Final = 256
_END: Final = (1 << 63) - 1
"""A key above all others."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
LULL_SECONDS: Final = 0.03
LONGEST_WAIT_SECONDS: Final = 0.5
"""Writes that follow each other more closely than a lull go before a further batch, but never make it wait longer."""


_TURNS: Final = """
WITH turn AS MATERIALIZED (
    SELECT key, author, text, (
        SELECT before.key FROM record AS before WHERE before.owner = record.owner AND before.session = record.session
        AND (before.occurred_at, before.key) < (record.occurred_at, record.key)
        ORDER BY before.occurred_at DESC, before.key DESC LIMIT 1
    ) AS before
    FROM record WHERE key IN (SELECT value FROM json_each(?))
)
SELECT turn.*, record.author, record.text FROM turn LEFT JOIN record ON record.key = turn.before
"""
_SPANS: Final = (
    "SELECT record, start, stop FROM chunk WHERE record IN (SELECT value FROM json_each(?)) ORDER BY record, n"
)

Piece = tuple[int, int]
"""Key of the record and number of the chunk."""


class Backlog:
    """The task that pays vectors back. Lives on the core loop."""

    def __init__(self, reader: Connection, writer: Writer, embedder: Embedder) -> None:
        self._reader = reader
        self._writer = writer
        self._embedder = embedder
        self._wake = asyncio.Event()
        self._wake.set()  # an earlier process may have left some
        self._task = asyncio.create_task(self._serve(), name="memory-core backlog")

    def wake(self) -> None:
        """Say that vectors may be owed."""
        self._wake.set()

    async def complete(self, owner: int) -> None:
        """Compute the vectors that this owner lacks now, and none that its writers or others lack later.

        Raises:
            EmbeddingError: The embedder still fails.
        """
        last: Piece | None = (owner << OWNER_BITS, -1)
        stop = await self._reader.run(lambda db: _next_key(db, owner))
        while last is not None:
            last, texts = await self._reader.run(partial(_next_batch, after=last, stop=stop))
            await self._compute(texts)

    async def close(self) -> None:
        """Stop; what is still owed is paid by the next process that opens the file."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _serve(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                while await self._pay():
                    await self._give_way()
                pause = FIRST_PAUSE_SECONDS
            except (EmbeddingError, StorageError) as error:
                if not threading.main_thread().is_alive():
                    return  # the interpreter is ending: the next process that opens the file pays
                logger.warning("vectors stay owed for now, next try in %.0f s: %s", pause, reason_for_log(error))
                pause = await self._rest(pause)

    async def _give_way(self) -> None:
        """Wait for a lull: whoever adds a lot gets done sooner, and the words are what is found first."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                while self._wake.is_set():
                    self._wake.clear()
                    await asyncio.sleep(LULL_SECONDS)

    async def _rest(self, pause: float) -> float:
        await asyncio.sleep(pause)
        self._wake.set()
        return min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _pay(self) -> int:
        """One batch; returns how many were owed."""
        _, texts = await self._reader.run(_next_batch)
        await self._compute(texts)
        return len(texts)

    async def _compute(self, texts: dict[Piece, str]) -> None:
        if texts:
            blobs = await embed(self._embedder, list(texts.values()))
            await self._writer.write(lambda db: _store(db, self._embedder.fingerprint, texts, blobs))


def _next_key(db: sqlite3.Connection, owner: int) -> int:
    """The key of the owner's next record; one that is below all of them if the owner is gone."""
    row = db.execute("SELECT next FROM owner WHERE id = ?", (owner,)).fetchone()
    return (owner << OWNER_BITS) + (row[0] if row else 0)


def _next_batch(
    db: sqlite3.Connection, after: Piece = (0, -1), stop: int = _END
) -> tuple[Piece | None, dict[Piece, str]]:
    """What to embed next of the records below the key `stop`, after the piece `after`; and the last of it, if any."""
    with snapshot(db):
        pieces: list[Piece] = db.execute(
            "SELECT record, n FROM chunk WHERE vector IS NULL AND (record, n) > (?, ?) AND record < ? "
            "ORDER BY record, n LIMIT ?",
            (*after, stop, BATCH),
        ).fetchall()
        return max(pieces, default=None), texts_of(db, pieces)


def texts_of(db: sqlite3.Connection, pieces: Iterable[Piece]) -> dict[Piece, str]:
    """What has to be embedded for each of these pieces, as the file stands now; nothing for those that are gone."""
    wanted = list(pieces)
    keys = encode_json(sorted({key for key, _ in wanted}))
    spans: dict[int, list[tuple[int, int]]] = {}
    for key, start, stop in db.execute(_SPANS, (keys,)):
        spans.setdefault(key, []).append((start, stop))
    whole: dict[int, list[str]] = {}
    for key, author, text, before, *turn in db.execute(_TURNS, (keys,)):
        seen = None if before is None else (turn[0], turn[1])
        whole[key] = pieces_to_embed(author, text, spans.get(key, ()), seen)
    return {(key, n): whole[key][n] for key, n in wanted if n < len(whole.get(key, ()))}


def _store(db: sqlite3.Connection, made_by: Fingerprint, embedded: dict[Piece, str], blobs: list[bytes]) -> None:
    """Store the vectors of texts that are still what was embedded, if the file still wants that embedder's."""
    insist(db, made_by)
    texts = texts_of(db, embedded)
    rows: list[tuple[bytes, int, int]] = []
    paid: dict[int, set[int]] = {}
    for ((key, n), text), blob in zip(embedded.items(), blobs, strict=True):
        if texts.get((key, n)) == text:
            rows.append((blob, key, n))
            paid.setdefault(key >> OWNER_BITS, set()).add(key)
    db.executemany("UPDATE chunk SET vector = ? WHERE record = ? AND n = ?", rows)
    for owner, keys in paid.items():
        note_changes(db, owner, sorted(keys))
