"""Re-embed all stored texts while searches use the old vectors.

The vectors of the new embedder are collected in their own table, in batches, each of which is durable: an interrupted
run continues where it stopped, in this process or another. Triggers delete a vector from that table when any process
changes or deletes its text. At the end one transaction replaces the old vectors by the new ones; vectors of texts
written last are pending and computed by `PendingVectors`.

The table exists only during the run, so it is not part of the schema.
"""

from __future__ import annotations

import sqlite3
from typing import Final
from zlib import crc32

from memory_core.errors import FingerprintError
from memory_core.models import Fingerprint
from memory_core.storage.shared.embedding_batches import embed
from memory_core.storage.sqlite import meta
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.meta import store_fingerprint, stored_fingerprint
from memory_core.storage.sqlite.owners import note_changes
from memory_core.storage.sqlite.pending_vectors import CHUNKS_AT_ONCE, Piece, texts_of
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.supplied import Embedder
from memory_core.values.progress import Progress, ProgressCallback

ROUNDS: Final = 2
"""Passes over the whole file: the second one finds texts written during the first."""

_TARGET: Final = "reembedding"
"""The name in `meta` of the new embedder's fingerprint."""

_FORGET: Final = "BEGIN DELETE FROM renewal WHERE record = old.record AND n = old.n; END"
_CREATE: Final = (
    (
        "CREATE TABLE renewal (record INTEGER, n INTEGER, vector BLOB NOT NULL, vector_digest INTEGER NOT NULL, "
        "PRIMARY KEY (record, n)) WITHOUT ROWID"
    ),
    f"CREATE TRIGGER renewal_gone AFTER DELETE ON chunk {_FORGET}",
    f"CREATE TRIGGER renewal_pending AFTER UPDATE OF vector ON chunk WHEN new.vector IS NULL {_FORGET}",
)
_DROP: Final = ("DROP TRIGGER renewal_gone", "DROP TRIGGER renewal_pending", "DROP TABLE renewal")

_MISSING_FROM: Final = (
    "FROM chunk WHERE (record, n) > (?, ?) AND NOT EXISTS "
    "(SELECT 1 FROM renewal WHERE renewal.record = chunk.record AND renewal.n = chunk.n)"
)
_MISSING: Final = f"SELECT record, n {_MISSING_FROM} ORDER BY record, n LIMIT ?"
_REPLACE: Final = (
    "UPDATE chunk SET (vector, vector_digest) = "
    "(SELECT vector, vector_digest FROM renewal WHERE renewal.record = chunk.record AND renewal.n = chunk.n)"
)


async def collect(reader: Readers, writer: Writer, embedder: Embedder, progress: ProgressCallback | None = None) -> int:
    """Compute the vectors that are still missing; returns how many.

    Raises:
        EmbeddingError: The embedder failed; vectors computed so far are kept for the next attempt.
        FingerprintError: Another caller has begun to re-embed the file for another embedder.
    """
    target = embedder.fingerprint
    if not await writer.write(lambda db: _begin(db, target)):
        return 0
    made, total = 0, 0 if progress is None else await reader.run(_count_missing)
    for _ in range(ROUNDS):
        last: Piece | None = (0, 0)
        while last is not None:
            if progress is not None:
                progress(Progress(made, max(made, total)))
            last, texts = await _next(reader, last, target)
            made += await _renew(writer, embedder, texts)
    if progress is not None:
        progress(Progress(made, made))
    return made


async def switch(writer: Writer, target: Fingerprint) -> None:
    """Replace the old vectors by the new ones, unless another process has done so."""
    await writer.write(lambda db: _switch(db, target))


def _begin(db: sqlite3.Connection, target: Fingerprint) -> bool:
    """Continue an interrupted run or begin one; `False` if there is nothing to do."""
    if stored_fingerprint(db) == target:
        return False
    left = stored_fingerprint(db, _TARGET)
    if left != target:
        for statement in (_DROP if left else ()) + _CREATE:
            db.execute(statement)
        store_fingerprint(db, target, _TARGET)
    return True


def _count_missing(db: sqlite3.Connection) -> int:
    (count,) = db.execute(f"SELECT count(*) {_MISSING_FROM}", (0, 0)).fetchone()
    return int(count)


async def _next(reader: Readers, last: Piece, target: Fingerprint) -> tuple[Piece | None, dict[Piece, str]]:
    """The last chunk of the batch that follows `last` (`None` at the end of the file), and the texts to embed."""

    def read(db: sqlite3.Connection) -> tuple[Piece | None, dict[Piece, str]]:
        with snapshot(db):
            if not _is_wanted(db, target):
                return None, {}
            pieces: list[Piece] = db.execute(_MISSING, (*last, CHUNKS_AT_ONCE)).fetchall()
            return max(pieces, default=None), texts_of(db, pieces)

    return await reader.run(read)


async def _renew(writer: Writer, embedder: Embedder, texts: dict[Piece, str]) -> int:
    if not texts:
        return 0
    blobs = await embed(embedder, list(texts.values()))
    return await writer.write(lambda db: _keep(db, embedder.fingerprint, texts, blobs))


def _keep(db: sqlite3.Connection, target: Fingerprint, embedded: dict[Piece, str], blobs: list[bytes]) -> int:
    """Store the vectors of texts that have not changed since they were embedded; returns how many."""
    if not _is_wanted(db, target):
        return 0
    texts = texts_of(db, embedded)
    rows = [
        (*piece, blob, crc32(blob))
        for (piece, text), blob in zip(embedded.items(), blobs, strict=True)
        if texts.get(piece) == text
    ]
    db.executemany("INSERT OR REPLACE INTO renewal VALUES (?, ?, ?, ?)", rows)
    return len(rows)


def _switch(db: sqlite3.Connection, target: Fingerprint) -> None:
    if not _is_wanted(db, target):
        return
    drop_gone, drop_pending, drop_table = _DROP
    for statement in (drop_gone, drop_pending, _REPLACE, drop_table):
        db.execute(statement)
    meta.remove(db, _TARGET)
    store_fingerprint(db, target)
    for (owner,) in db.execute("SELECT id FROM owner").fetchall():
        # Followers check the fingerprint when the version has changed. Record 0 of an owner does not exist.
        note_changes(db, owner, [owner << OWNER_BITS])


def _is_wanted(db: sqlite3.Connection, target: Fingerprint) -> bool:
    """True if the run for this target is unfinished; `False` if another process has finished it."""
    if stored_fingerprint(db) == target:
        return False
    other = stored_fingerprint(db, _TARGET)
    if other != target:
        raise FingerprintError(
            f"re-embedding for {target.name} {target.revision} was stopped: the file is being re-embedded for "
            f"{other.name if other else 'another embedder'} now; begin again when that is done"
        )
    return True
