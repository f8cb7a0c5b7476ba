"""The check that a store file is whole: records, full text, chunks, vectors and outbox say the same."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from memory_core import Embedder, MemoryRecord
from memory_core.chunking import split
from memory_core.models import DERIVING
from memory_core.retrieval.features import features
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.schema import OWNER_BITS


def assert_consistent(path: Path, embedder: Embedder | None = None) -> None:
    """Check every row of every table against the record it was derived from.

    With an embedder every vector that is there has to be the one of the text as it stands now.
    """
    with _opened(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        records = _records(db)
        _check_owners(db, records)
        _check_full_text(db, records)
        _check_chunks(db, records, embedder)
        _check_links(db, records)


def owed(path: Path) -> int:
    """The number of vectors that are missing."""
    with _opened(path) as db:
        return int(db.execute("SELECT count(*) FROM chunk WHERE vector IS NULL").fetchone()[0])


def vectors(path: Path) -> dict[tuple[str, int], bytes | None]:
    """The vector of each piece, by text and number."""
    with _opened(path) as db:
        rows = db.execute("SELECT text, n, vector FROM chunk JOIN record ON record.key = chunk.record").fetchall()
    found = {(text, n): vector for text, n, vector in rows}
    assert len(found) == len(rows), "the texts have to differ"
    return found


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    assert path.is_file()
    with closing(sqlite3.connect(path, isolation_level=None, timeout=300)) as db:
        yield db


def _records(db: sqlite3.Connection) -> dict[int, MemoryRecord]:
    owners = {owner: (app, user) for owner, app, user in db.execute("SELECT id, app, user FROM owner")}
    rows = db.execute(f"SELECT {COLUMNS}, owner, key FROM record").fetchall()
    return {row[-1]: to_record(row, *owners[row[-2]]) for row in rows}


def _check_owners(db: sqlite3.Connection, records: dict[int, MemoryRecord]) -> None:
    for owner, following, version in db.execute("SELECT id, next, version FROM owner").fetchall():
        keys = [key for (key,) in db.execute("SELECT key FROM record WHERE owner = ?", (owner,))]
        assert all(key >> OWNER_BITS == owner and 0 < key & 0xFFFFFFFF < following for key in keys)
        ids = [records[key].id for key in keys]
        assert len(set(ids)) == len(ids)
        sources = [source for key in keys if (source := records[key].source_key) is not None]
        assert len(set(sources)) == len(sources)
        outbox = db.execute("SELECT version, key FROM outbox WHERE owner = ? ORDER BY seq", (owner,)).fetchall()
        versions = [changed for changed, _ in outbox]
        assert sorted(set(versions)) == list(range(1, version + 1))
        assert versions == sorted(versions)
        assert all(key >> OWNER_BITS == owner for _, key in outbox)


def _check_links(db: sqlite3.Connection, records: dict[int, MemoryRecord]) -> None:
    found = {(record, target): bool(derives) for record, target, derives in db.execute("SELECT * FROM link")}
    wanted: dict[tuple[int, str], bool] = {}
    for key, record in records.items():
        for link in record.links:
            wanted[key, link.id] = wanted.get((key, link.id), False) or link.relation in DERIVING
    assert found == wanted


def _check_full_text(db: sqlite3.Connection, records: dict[int, MemoryRecord]) -> None:
    lexical = {key: rest for key, *rest in db.execute("SELECT key, terms, flags, words FROM lexical")}
    assert lexical.keys() == records.keys()
    for key, record in records.items():
        wanted = features(record)
        assert lexical[key] == [wanted.packed, wanted.flags, wanted.words]


def _check_chunks(db: sqlite3.Connection, records: dict[int, MemoryRecord], embedder: Embedder | None) -> None:
    found: dict[int, list[tuple[int, int, int, bytes | None]]] = {key: [] for key in records}
    for key, *rest in db.execute("SELECT record, n, start, stop, vector FROM chunk ORDER BY record, n"):
        assert key in found, "a chunk without a record"
        found[key].append((rest[0], rest[1], rest[2], rest[3]))
    texts: list[str] = []
    blobs: list[bytes] = []
    for key, chunks in found.items():
        record = records[key]
        assert [(start, stop) for _, start, stop, _ in chunks] == split(record.text)
        for _, start, stop, vector in chunks:
            if vector is not None:
                texts.append(record.text[start:stop])
                blobs.append(vector)
    if embedder is not None and texts:
        wanted = asyncio.run(_embed(embedder, texts))
        stale = [text for text, blob, vector in zip(texts, blobs, wanted, strict=True) if blob != vector]
        assert stale == []


async def _embed(embedder: Embedder, texts: list[str]) -> list[bytes]:
    return [row.astype(np.float16).tobytes() for row in await embedder.embed_documents(texts)]
