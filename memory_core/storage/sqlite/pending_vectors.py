"""Compute pending vectors in the background, in batches, until none is left.

A vector is pending if its record was added with `embed="later"` or if the embedder failed. Until it is computed,
searches find the record by its words only.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final
from zlib import crc32

from memory_core.models import Fingerprint
from memory_core.storage.shared.background import BackgroundTask
from memory_core.storage.shared.embedding_batches import texts_to_embed
from memory_core.storage.shared.refusals import Refusals
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.meta import check_fingerprint
from memory_core.storage.sqlite.owners import note_changes
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.supplied import Embedder
from memory_core.values.json_text import encode_json

CHUNKS_AT_ONCE: Final = 256
SHARE: Final = 64
"""Chunks of one owner in a batch, if other owners wait too."""
LULL_SECONDS: Final = 0.03
LONGEST_WAIT_SECONDS: Final = 0.5
"""Between batches, wait until no write came for the lull, but no longer than the other value: 1,500 adds one after the
other end in 6.7 to 7.0 seconds instead of 8.0 to 9.4, and take a quarter less of the CPU."""


_TEXTS: Final = "SELECT key, text FROM record WHERE key IN (SELECT value FROM json_each(?))"
_SPANS: Final = (
    "SELECT record, start, stop FROM chunk WHERE record IN (SELECT value FROM json_each(?)) ORDER BY record, n"
)

Piece = tuple[int, int]
"""Key of the record and number of the chunk."""


class PendingVectors:
    """The background task that computes pending vectors. Runs on the core loop."""

    def __init__(self, reader: Readers, writer: Writer, embedder: Embedder) -> None:
        self._reader = reader
        self._writer = writer
        self._refusals = Refusals[Piece](embedder)
        self._last = 0
        """The owner whose turn was the last one."""
        self._task = BackgroundTask("memory-core pending vectors", self._compute, self._refusals.next_try)

    def wake(self) -> None:
        """Notify the task that vectors may be pending."""
        self._task.wake()

    async def close(self) -> None:
        """Stop; the next process that opens the file computes what is still pending."""
        await self._task.close()

    async def _compute(self) -> None:
        while await self._compute_batch():
            await self._wait_for_lull()

    async def _wait_for_lull(self) -> None:
        """Wait for a lull in the writes, so that many adds finish sooner; their words can be searched already."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                while self._task.is_woken:
                    self._task.rest()
                    await asyncio.sleep(LULL_SECONDS)

    async def _compute_batch(self) -> int:
        """Compute one batch; returns the number of chunks in it."""
        set_aside = set(self._refusals.set_aside())
        texts, self._last = await self._reader.run(lambda db: _next_batch(db, self._last, set_aside))
        vectors = await self._refusals.embed({piece: [text] for piece, text in texts.items()})
        if vectors:
            made_by = self._refusals.embedder.fingerprint
            await self._writer.write(lambda db: _store(db, made_by, texts, vectors))
        return len(texts)


def _next_batch(db: sqlite3.Connection, after: int, set_aside: Collection[Piece]) -> tuple[dict[Piece, str], int]:
    """Pending chunks but for those that were set aside, and the last owner who has got a share.

    Owners take turns, beginning after the given one. Each gets a share, oldest first; what is left of the batch after
    all of them goes to the oldest.
    """
    with snapshot(db):
        chosen: dict[Piece, None] = {}
        last = after
        for owner in _owners_waiting(db, after):
            first = owner << OWNER_BITS
            chosen |= dict.fromkeys(_pending(db, first, first + (1 << OWNER_BITS), SHARE, set_aside))
            last = owner
            if len(chosen) >= CHUNKS_AT_ONCE:
                break
        else:
            chosen |= dict.fromkeys(_pending(db, 0, _END, CHUNKS_AT_ONCE, set_aside))
        return texts_of(db, list(chosen)[:CHUNKS_AT_ONCE]), last


_END: Final = 2**63 - 1
_FIRST_PENDING: Final = "SELECT record FROM chunk WHERE vector IS NULL AND record >= ? ORDER BY record, n LIMIT 1"
_PENDING: Final = (
    "SELECT record, n FROM chunk WHERE vector IS NULL AND record >= ? AND record < ? ORDER BY record, n LIMIT ?"
)


def _owners_waiting(db: sqlite3.Connection, after: int) -> Iterator[int]:
    """The owners with pending chunks: first those after the given one, then the others."""
    for start, stop in ((after + 1, _END >> OWNER_BITS), (0, after)):
        owner = start - 1
        while row := db.execute(_FIRST_PENDING, ((owner + 1) << OWNER_BITS,)).fetchone():
            owner = row[0] >> OWNER_BITS
            if owner > stop:
                break
            yield owner


def _pending(db: sqlite3.Connection, first: int, end: int, most: int, set_aside: Collection[Piece]) -> Iterable[Piece]:
    found = db.execute(_PENDING, (first, end, most + len(set_aside))).fetchall()
    return [piece for piece in found if piece not in set_aside][:most]


def texts_of(db: sqlite3.Connection, pieces: Iterable[Piece]) -> dict[Piece, str]:
    """The current text to embed for each of these chunks; chunks that no longer exist are left out."""
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


def _store(
    db: sqlite3.Connection, made_by: Fingerprint, embedded: dict[Piece, str], vectors: Mapping[Piece, Sequence[bytes]]
) -> None:
    """Store the vectors of texts that did not change since, if the file still uses this embedder."""
    check_fingerprint(db, made_by)
    texts = texts_of(db, vectors)
    rows: list[tuple[bytes, int, int, int]] = []
    computed: dict[int, set[int]] = {}
    for (key, n), (blob,) in vectors.items():
        if texts.get((key, n)) == embedded[key, n]:
            rows.append((blob, crc32(blob), key, n))
            computed.setdefault(key >> OWNER_BITS, set()).add(key)
    db.executemany("UPDATE chunk SET vector = ?, vector_digest = ? WHERE record = ? AND n = ?", rows)
    for owner, keys in computed.items():
        note_changes(db, owner, sorted(keys))
