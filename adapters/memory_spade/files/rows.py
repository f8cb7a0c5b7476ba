"""Converts a database of spade_llm to a core store, in place, once, and without loss."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import math
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from memory_core import (
    Draft,
    InvalidInputError,
    Json,
    Memory,
    MemoryRecord,
    Scope,
    Store,
    StoreUnavailableError,
    utc_now,
)
from memory_core.adapting import MAX_TEXT_CHARS, check_key, check_unit, complete, new_id, with_context
from memory_spade.files.durable import sync_directory
from memory_spade.files.names import BASE_COLLECTION, identity
from memory_spade.files.tables import COLUMNS, ORIGINAL, is_stock, show_agent_memories

logger = logging.getLogger(__name__)

_BATCH: Final = 1_000
_LOCK_SECONDS: Final = 30.0

Row = dict[str, object]
T = TypeVar("T")


class AgentMemories(Memory):
    """The long-term memories of a SPADE agent in the file named in spade_llm's document.

    On first use, `prepare_agent_memories` creates or converts the file.

    Args:
        path: The file.
        stock: Another name under which spade_llm may have left this agent's database.
    """

    def __init__(self, path: Path, *, stock: Path | None = None) -> None:
        super().__init__(path)
        self._path = path
        self._stock = stock
        self._preparing = asyncio.Lock()
        self._is_prepared = False

    async def ready(self) -> Store:
        """See `Memory.ready`; also raises the `StorageError`s of `prepare_agent_memories`."""
        if not self._is_prepared:
            async with self._preparing:
                if not self._is_prepared:
                    await asyncio.to_thread(prepare_agent_memories, self._path, stock=self._stock)
                    self._is_prepared = True
        return await super().ready()


def prepare_agent_memories(path: Path, *, stock: Path | None = None) -> None:
    """Create a store file with the documented table at `path`, or convert the file that is there. Blocking.

    A database of spade_llm is converted: its rows become records, the old database is kept next to the new file under
    another name, and only then does the new file replace it. Pending vectors are computed in the background. If the
    process dies during the conversion, the old database is still in place and the next call starts again. Stop all
    spade_llm processes that write to the database first.

    Args:
        path: The file; created together with its directory if it is missing.
        stock: Another name under which spade_llm may have left this agent's database; read if `path` is missing, and
            left as it is.

    Raises:
        NotAStoreError: The file is neither a store nor spade_llm's. It was not touched.
        StoreUnavailableError: spade_llm's database is damaged or in use by a writer. It was not touched.
    """
    from memory_core.adapting import file_problems_explained, prepare_file  # noqa: PLC0415  (SQLite, for the few who need this)

    path = path.expanduser().absolute()
    with file_problems_explained(f"the memory file {str(path)!r}"):
        path.parent.mkdir(parents=True, exist_ok=True)  # `memory_path` names a directory for files to be made in
    source = path if stock is None or path.exists() else stock.expanduser().absolute()
    if _may_be_stock(source):
        with file_problems_explained(f"the database {str(source)!r}"):
            _adopt(source, path)
    prepare_file(path)
    show_agent_memories(path)


def _may_be_stock(path: Path) -> bool:
    """Whether the header is that of a SQLite file without an application id."""
    from memory_core.adapting import file_header  # noqa: PLC0415  (SQLite, for the few who need this)

    try:
        found = file_header(path) if path.is_file() and path.stat().st_size else None
    except (OSError, sqlite3.Error):
        return False  # opening the store reports the problem
    return found is not None and found.application == 0


def _adopt(source: Path, path: Path) -> None:
    with _alone(path) as lock:
        # Another process may have converted it in the meantime. With a connection from before that, SQLite would treat
        # the write-ahead log of the new file as that of the old one.
        if not _may_be_stock(source) or (source != path and path.exists()):
            return
        with closing(_connected(source)) as db:
            if not is_stock(db):
                return
            with _without_writers(db):
                count = _replace(db, source, path)
        lock.unlink()
    logger.info("%d memories of spade_llm were taken over into %s", count, path)


@contextmanager
def _alone(path: Path) -> Generator[Path]:
    """Lock the conversion for other processes; yields the lock file, to be removed after the conversion."""
    lock = path.with_name(f"{path.name}.adopting.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(descriptor)


def _replace(db: sqlite3.Connection, source: Path, path: Path) -> int:
    temporary = path.with_name(f"{path.name}.adopting")
    for leftover in (temporary, Path(f"{temporary}-wal"), Path(f"{temporary}-shm")):
        leftover.unlink(missing_ok=True)
    count = asyncio.run(_copy(db, temporary))
    if source == path:
        _keep(source)
    temporary.replace(path)
    sync_directory(path.parent)
    return count


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None, timeout=_LOCK_SECONDS)
    db.text_factory = _text
    return db


@contextmanager
def _without_writers(db: sqlite3.Connection) -> Generator[None]:
    """Block writers without changing the file; raises if SQLite finds the database damaged."""
    db.execute("PRAGMA journal_mode = DELETE")  # merges the write-ahead log, if the database has one
    db.execute("BEGIN IMMEDIATE")
    try:
        (verdict,) = db.execute("PRAGMA quick_check (1)").fetchone()
        if verdict != "ok":
            raise StoreUnavailableError(f"spade_llm's database is damaged ({verdict}); restore it, or move it away")
        yield
    finally:
        db.execute("ROLLBACK")


async def _copy(db: sqlite3.Connection, path: Path) -> int:
    """Write every row to a new store, with access counts and times; return the number of rows."""
    from memory_core.adapting import SqliteStore  # noqa: PLC0415  (numpy, for the few who need this)

    store = SqliteStore(path, embedder=None, clock=utc_now)
    await store.open()
    try:
        rows = db.execute(f"SELECT {', '.join(COLUMNS)} FROM agent_memories ORDER BY agent_id, rowid")  # noqa: S608
        records = (record_of(dict(zip(COLUMNS, row, strict=True))) for row in rows)
        count = 0
        for user, of_user in groupby(records, key=lambda record: record.user):
            while batch := list(islice(of_user, _BATCH)):
                await store.add(Scope(app="default", user=user), batch, embed_later=True)
                count += len(batch)
        return count
    finally:
        await store.close()


def record_of(row: Row) -> MemoryRecord:
    """Convert a row to a record; a value that is invalid in a record is kept in `data` and replaced by a default."""
    original: dict[str, Json] = {}

    def fitting(column: str, read: Callable[[object], T | None], instead: T) -> T:
        value = read(row[column])
        if value is None:
            original[column] = _json(row[column])
        return instead if value is None else value

    created = fitting("created_at", _moment, utc_now())
    accessed = fitting("last_accessed", _moment, created)
    count = fitting("access_count", _count, 0)
    agent = fitting("agent_id", _key, "unknown")
    context = None if row["context"] is None else fitting("context", _content, "")
    draft = Draft(
        with_context(fitting("content", _content, ""), context),
        id=fitting("id", _key, new_id()),
        kind=fitting("category", _key, "fact"),
        confidence=fitting("confidence", _unit, 1.0),
        data={} if context is None else {"context": context},
        occurred_at=created,
        agent=agent,
        collection=BASE_COLLECTION,
    )
    if original:
        draft = replace(draft, data={**draft.data, ORIGINAL: original})
    record = complete(draft, Scope(app="default", user=identity(agent)), created)
    return replace(record, accessed_at=accessed, access_count=count)


def _key(value: object) -> str | None:
    try:
        return check_key("a column", value)
    except InvalidInputError:
        return None


def _content(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and len(value) <= MAX_TEXT_CHARS else None


def _unit(value: object) -> float | None:
    try:
        return check_unit("confidence", value)
    except InvalidInputError:
        return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def _moment(value: object) -> datetime | None:
    """Parse a time. spade_llm writes local times without a zone; SQLite's default, which contains a space, is UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment.replace(tzinfo=UTC) if value[10:11] == " " and moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _json(value: object) -> Json:
    """Convert an SQLite value to JSON; bytes (text that is not UTF-8) become hexadecimal digits."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return value if value is None or (isinstance(value, int | float) and math.isfinite(value)) else str(value)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _keep(path: Path) -> None:
    """Keep the file under a second name."""
    kept = path.with_name(f"{path.name}.spade_llm-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    try:
        os.link(path, kept)
    except OSError:  # a file system without links; `open` must not touch what SQLite has open
        with closing(_connected(path)) as old, closing(sqlite3.connect(kept)) as new:
            old.backup(new)
    kept.chmod(0o600)
