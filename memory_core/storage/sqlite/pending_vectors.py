"""Vectors that are owed: computed in the background, in batches, until none is left.

A vector is owed when a record was added with `embed="later"` or when the embedder failed. Meanwhile the record is found
by its words.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from memory_core.encoding import encode_json
from memory_core.errors import EmbeddingError, StorageError, reason_for_log
from memory_core.models import Fingerprint
from memory_core.protocols import Embedder
from memory_core.storage.shared.prepared import embed, texts_to_embed
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.meta import insist
from memory_core.storage.sqlite.owners import note_changes
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.snapshot import snapshot
from memory_core.storage.sqlite.writer import Writer

logger = logging.getLogger(__name__)

BATCH: Final = 256
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
LULL_SECONDS: Final = 0.03
LONGEST_WAIT_SECONDS: Final = 0.5
"""Writes that follow each other more closely than a lull go before a further batch, but never make it wait longer."""


_TEXTS: Final = "SELECT key, text FROM record WHERE key IN (SELECT value FROM json_each(?))"
_SPANS: Final = (
    "SELECT record, start, stop FROM chunk WHERE record IN (SELECT value FROM json_each(?)) ORDER BY record, n"
)

Piece = tuple[int, int]
"""Key of the record and number of the chunk."""


class PendingVectors:
    """The task that pays vectors back. Lives on the core loop."""

    def __init__(self, reader: Connection, writer: Writer, embedder: Embedder) -> None:
        self._reader = reader
        self._writer = writer
        self._embedder = embedder
        self._wake = asyncio.Event()
        self._wake.set()  # an earlier process may have left some
        self._task = asyncio.create_task(self._serve(), name="memory-core pending_vectors")

    def wake(self) -> None:
        """Say that vectors may be owed."""
        self._wake.set()

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
        texts = await self._reader.run(_next_batch)
        await self._compute(texts)
        return len(texts)

    async def _compute(self, texts: dict[Piece, str]) -> None:
        if texts:
            blobs = await embed(self._embedder, list(texts.values()))
            await self._writer.write(lambda db: _store(db, self._embedder.fingerprint, texts, blobs))


def _next_batch(db: sqlite3.Connection) -> dict[Piece, str]:
    with snapshot(db):
        owed = db.execute("SELECT record, n FROM chunk WHERE vector IS NULL ORDER BY record, n LIMIT ?", (BATCH,))
        return texts_of(db, owed.fetchall())


def texts_of(db: sqlite3.Connection, pieces: Iterable[Piece]) -> dict[Piece, str]:
    """What has to be embedded for each of these pieces, as the file stands now; nothing for those that are gone."""
    with explaining("a text or its pieces"):
        return _texts_of(db, pieces)


def _texts_of(db: sqlite3.Connection, pieces: Iterable[Piece]) -> dict[Piece, str]:
    wanted = list(pieces)
    keys = encode_json(sorted({key for key, _ in wanted}))
    spans: dict[int, list[tuple[int, int]]] = {}
    for key, start, stop in db.execute(_SPANS, (keys,)):
        spans.setdefault(key, []).append((start, stop))
    whole = {key: texts_to_embed(text, spans.get(key, ())) for key, text in db.execute(_TEXTS, (keys,))}
    return {(key, n): whole[key][n] for key, n in wanted if n < len(whole.get(key, ()))}


def _store(db: sqlite3.Connection, made_by: Fingerprint, embedded: dict[Piece, str], blobs: list[bytes]) -> None:
    """Store the vectors of texts that are still what was embedded, if the file still wants that embedder's."""
    insist(db, made_by)
    texts = texts_of(db, embedded)
    rows: list[tuple[bytes, int, int, int]] = []
    paid: dict[int, set[int]] = {}
    for ((key, n), text), blob in zip(embedded.items(), blobs, strict=True):
        if texts.get((key, n)) == text:
            rows.append((blob, crc32(blob), key, n))
            paid.setdefault(key >> OWNER_BITS, set()).add(key)
    db.executemany("UPDATE chunk SET vector = ?, vector_digest = ? WHERE record = ? AND n = ?", rows)
    for owner, keys in paid.items():
        note_changes(db, owner, sorted(keys))
