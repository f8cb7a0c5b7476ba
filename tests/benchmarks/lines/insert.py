"""Durable single adds by 1, 8 and 32 concurrent writers, beside raw sqlite3 with the same tables.

Both write with `synchronous=FULL`: when an add returns it is on disk. "Raw" is what SQLite itself can do: rows made
beforehand, put into the same tables with the same indexes by `executemany` in one thread, one commit for as many rows
as there are writers. Vectors are given to both.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from common import KnownVectors, drafts
from lines.figure import Figure, relative
from lines.result import Measured
from memory_core import Draft, Memory, Scope
from memory_core.models import MemoryRecord
from memory_core.records.draft_to_record import complete_all
from memory_core.storage.shared.prepared import prepare
from memory_core.storage.sqlite.codec import COLUMNS, to_row
from memory_core.storage.sqlite.connection import set_up
from memory_core.storage.sqlite.files import prepare_file
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.values.times import utc_now

ROUNDS = 7
COUNTS = {1: 800, 8: 3_200, 32: 6_400}
"""The numbers of adds, by the number of writers: each round takes about a second."""
LEAST = {1: 0.7, 8: 0.6, 32: 0.5}
MARKS = ", ".join("?" * (COLUMNS.count(",") + 1))
SCOPE = Scope(app="bench", user="ann")


async def through_the_library(path: Path, texts: Sequence[Draft], vectors: KnownVectors, writers: int) -> float:
    """Adds a second."""
    async with Memory(path, embedder=vectors) as memory:
        handle = memory.bind(app=SCOPE.app, user=SCOPE.user)
        await handle.add(texts[0])

        async def write(mine: Sequence[Draft]) -> None:
            for draft in mine:
                await handle.add(draft)

        start = time.perf_counter()
        await asyncio.gather(*(write(texts[number::writers]) for number in range(writers)))
        seconds = time.perf_counter() - start
        assert not (await handle.stats()).vectors_pending, "not all vectors were given"
        return len(texts) / seconds


def raw(path: Path, records: Sequence[MemoryRecord], vectors: KnownVectors, batch: int) -> float:
    """Rows a second."""
    tables = [rows_of(record, vectors, seq) for seq, record in enumerate(records, 1)]
    with closing(sqlite3.connect(prepare_file(path), isolation_level=None)) as db:
        set_up(db)
        db.execute("INSERT INTO owner (id, app, user) VALUES (1, ?, ?)", (SCOPE.app, SCOPE.user))
        start = time.perf_counter()
        for first in range(0, len(tables), batch):
            some = tables[first : first + batch]
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE owner SET next = next + ? WHERE id = 1", (len(some),))
            db.executemany(f"INSERT INTO record (key, owner, {COLUMNS}) VALUES (?, ?, {MARKS})", [r[0] for r in some])
            db.executemany("INSERT INTO lexical VALUES (?, ?, ?, ?)", [r[1] for r in some])
            db.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)", [r[2] for r in some])
            db.execute("COMMIT")
        return len(tables) / (time.perf_counter() - start)


def rows_of(record: MemoryRecord, vectors: KnownVectors, seq: int) -> tuple[tuple[object, ...], ...]:
    """The row of one record in each table."""
    item, key = prepare(record), 1 << OWNER_BITS | seq
    vector = vectors.stored(record.text)
    return (
        (key, 1, *to_row(record)),
        (key, item.features.packed, item.features.flags, item.features.words),
        (key, 0, 0, len(record.text), 0, vector, 0),
    )


def figure(writers: int, count: int, rounds: int) -> Figure:
    texts = [Draft(draft.text, author=draft.author) for draft in drafts(count, 7)]
    vectors = KnownVectors([draft.text for draft in texts])
    records = complete_all(texts, SCOPE, utc_now())
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(asyncio.run(through_the_library(Path(folder) / "a.db", texts, vectors, writers)))
            floor.append(raw(Path(folder) / "b.db", records, vectors, writers))
    return relative(_name(writers), "/s", ours, beside="raw SQLite", other=floor, least=LEAST[writers])


def _name(writers: int) -> str:
    return f"{writers} writers" if writers > 1 else "1 writer"


def measure(*, short: bool) -> Measured:
    return Measured(
        [figure(writers, 40 if short else count, 1 if short else ROUNDS) for writers, count in COUNTS.items()]
    )
