"""Vectors that are owed: computed in the background, in batches, until none is left.

A vector is owed when a record was added with `embed="later"`, when the embedder failed, or when the turn before it
changed, went, or arrived late. Meanwhile the record is found by its words.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

from memory_core.errors import EmbeddingError, StorageError
from memory_core.models import Fingerprint
from memory_core.protocols import Embedder
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.fingerprints import insist
from memory_core.storage.sqlite.owners import note_changes
from memory_core.storage.sqlite.prepared import Before, embed, texts_to_embed
from memory_core.storage.sqlite.rows import COLUMNS, micros, to_record
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.snapshot import snapshot
from memory_core.storage.sqlite.writer import Writer
from memory_core.storage.sqlite.writing import previous_turn

logger = logging.getLogger(__name__)

BATCH: Final = 256
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0


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
        self._paying = asyncio.Lock()
        self._task = asyncio.create_task(self._serve(), name="memory-core backlog")

    def wake(self) -> None:
        """Say that vectors may be owed."""
        self._wake.set()

    async def drain(self) -> None:
        """Pay all that is owed now; raises `EmbeddingError` if the embedder still fails."""
        while await self._pay():
            pass

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
                await self.drain()
                pause = FIRST_PAUSE_SECONDS
            except (EmbeddingError, StorageError) as error:
                logger.warning("vectors stay owed for now, next try in %.0f s: %s", pause, error)
                pause = await self._rest(pause)
            except Exception:  # an embedder of somebody else may raise anything, and may work the next time
                logger.exception("vectors stay owed for now, next try in %.0f s", pause)
                pause = await self._rest(pause)

    async def _rest(self, pause: float) -> float:
        await asyncio.sleep(pause)
        self._wake.set()
        return min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _pay(self) -> int:
        """One batch; returns how many were owed."""
        async with self._paying:
            texts = await self._reader.run(_next_batch)
            if texts:
                blobs = await embed(self._embedder, list(texts.values()))
                await self._writer.write(lambda db: _store(db, self._embedder.fingerprint, texts, blobs))
            return len(texts)


def _next_batch(db: sqlite3.Connection) -> dict[Piece, str]:
    with snapshot(db):
        owed = db.execute("SELECT record, n FROM chunk WHERE vector IS NULL ORDER BY record, n LIMIT ?", (BATCH,))
        return texts_of(db, owed.fetchall())


def texts_of(db: sqlite3.Connection, pieces: Iterable[Piece]) -> dict[Piece, str]:
    """What has to be embedded for each of these pieces, as the file stands now; nothing for those that are gone."""
    texts: dict[Piece, str] = {}
    for key, some in groupby(pieces, itemgetter(0)):
        row = db.execute(f"SELECT {COLUMNS}, owner FROM record WHERE key = ?", (key,)).fetchone()
        if row is None:
            continue
        record = to_record(row, "", "")
        before: Before | None = None
        if record.session is not None:
            before = previous_turn(db, row[-1], record.session, micros(record.occurred_at), key)
        chunks = db.execute("SELECT start, stop FROM chunk WHERE record = ? ORDER BY n", (key,)).fetchall()
        whole = texts_to_embed(record, chunks, before)
        texts.update({(key, n): whole[n] for _, n in some if n < len(whole)})
    return texts


def _store(db: sqlite3.Connection, made_by: Fingerprint, embedded: dict[Piece, str], blobs: list[bytes]) -> None:
    """Store the vectors of texts that are still what was embedded, if the file still wants that embedder's."""
    insist(db, made_by)
    texts = texts_of(db, embedded)
    paid: dict[int, list[int]] = {}
    for ((key, n), text), blob in zip(embedded.items(), blobs, strict=True):
        if texts.get((key, n)) == text:
            db.execute("UPDATE chunk SET vector = ? WHERE record = ? AND n = ?", (blob, key, n))
            paid.setdefault(key >> OWNER_BITS, []).append(key)
    for owner, keys in paid.items():
        note_changes(db, owner, sorted(set(keys)))
