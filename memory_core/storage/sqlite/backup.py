"""Copy a whole file while it is in use; the copy is checked and synced to disk before it gets its name."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from memory_core.concurrency.threads import in_thread
from memory_core.errors import (
    DamagedStoreError,
    InvalidInputError,
    NotAStoreError,
    StorageError,
    StoreUnavailableError,
)
from memory_core.storage.sqlite import lineage
from memory_core.storage.sqlite.checking import check
from memory_core.storage.sqlite.connection import IN_MEMORY, Connection
from memory_core.storage.sqlite.files import file_header, find, real_path
from memory_core.storage.sqlite.problems import file_problems_explained
from memory_core.storage.sqlite.read_connection import connect_for_reading, open_for_reading
from memory_core.storage.sqlite.schema import APPLICATION_ID
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.unfinished_copies import remove_abandoned, unfinished
from memory_core.values.places import check_path
from memory_core.values.progress import Progress, ProgressCallback

SLICE_PAGES: Final = 256
"""Pages copied per step: 4 MiB, after which progress is reported and a cancellation is noticed."""
BUSY_SECONDS: Final = 1.0
"""The time to wait for a file in use before it is replaced."""

_BESIDE: Final = ("-wal", "-journal", "-shm")
"""Suffixes of the files that SQLite keeps beside a database and reads as part of it."""

Report = Callable[[Progress], None]


async def copy(
    source: Connection, path: str | os.PathLike[str], *, overwrite: bool, progress: ProgressCallback | None
) -> Path:
    """Copy what a connection reads to a file; see `Memory.backup`.

    The connection reads one state of the file throughout; writers are not blocked.
    """
    target = await in_thread(partial(_target, Path(path), overwrite=overwrite))
    stopped = Event()
    report = _reporter(asyncio.get_running_loop(), progress, stopped)
    try:
        await source.run(partial(_copy, target=target, overwrite=overwrite, report=report))
    except asyncio.CancelledError:
        stopped.set()  # the thread stops after the current step
        raise
    return target


async def restore(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    progress: ProgressCallback | None,
) -> Path:
    """See `Memory.restore`."""
    check_path("the backup", backup)
    name, _ = await in_thread(partial(find, Path(backup)))
    if await in_thread(partial(real_path, Path(path))) == name:
        raise InvalidInputError(f"{str(name)!r} is the backup itself; give the path of the memory to make from it")
    source = await connect_for_reading(name, follow=False)
    try:
        return await copy(source, path, overwrite=overwrite, progress=progress)
    finally:
        await source.close()


async def sourceless(path: Path) -> int:
    """The number of records of a file that were made of the words of others, of which one is not there: it has expired,
    say.

    Args:
        path: An absolute path.
    """
    file = await connect_for_reading(path, follow=False)
    try:
        return await file.run(_sourceless)
    finally:
        await file.close()


def _sourceless(db: sqlite3.Connection) -> int:
    (count,) = db.execute(
        "SELECT count(DISTINCT link.record) FROM link JOIN record ON record.key = link.record WHERE derives AND NOT "
        "EXISTS (SELECT 1 FROM record AS source WHERE source.owner = record.owner AND source.id = link.target)"
    ).fetchone()
    return int(count)


def _target(path: Path, *, overwrite: bool) -> Path:
    """The real path of the new file; its folder is created if it is missing."""
    if str(path) == IN_MEMORY:
        raise InvalidInputError("':memory:' is not a file; give the path of one")
    check_path("the file to make", path)
    with file_problems_explained(f"the file {str(path)!r}"):
        path = real_path(path)
        if path.exists():
            _require_store(path, overwrite=overwrite)
        elif left := [beside for end in _BESIDE if (beside := path.with_name(path.name + end)).exists()]:
            raise StoreUnavailableError(
                f"{str(left[0])!r} belongs to an earlier file of this name, and SQLite would read it as part of the "
                "new one; move it away, or give another path"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _require_store(path: Path, *, overwrite: bool) -> None:
    if not overwrite:
        raise InvalidInputError(f"there is a file {str(path)!r} already; give another path, or overwrite=True")
    found = file_header(path) if path.is_file() else None
    if found is None or found.application != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store that can be recognised; move it away first")
    lineage.insist_on_own_log(path)


def _copy(db: sqlite3.Connection, *, target: Path, overwrite: bool, report: Report) -> None:
    remove_abandoned(target.parent)
    with file_problems_explained(f"the file {str(target)!r}"), unfinished(target) as temporary:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as new, snapshot(db):
            new.execute("PRAGMA journal_mode = OFF")  # an interrupted copy is discarded
            new.execute("PRAGMA synchronous = OFF")  # and a complete one is synced below
            pages = _pages(db)
            report(Progress(0, pages, "copying"))
            db.backup(new, pages=SLICE_PAGES, progress=partial(_report_copied, report))
        _begin_lineage(temporary)
        report(Progress(pages, pages, "checking"))
        _check_intact(temporary)
        _synchronise(temporary)
        report(Progress(pages, pages))
        _put_in_place(temporary, target, overwrite=overwrite)


def _begin_lineage(copy: Path) -> None:
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")  # without a -shm file
        db.execute("PRAGMA synchronous = OFF")
        lineage.begin(db)


def _report_copied(report: Report, _: int, left: int, pages: int) -> None:
    report(Progress(pages - left, pages, "copying"))


def _pages(db: sqlite3.Connection) -> int:
    """The number of pages of the file; reads the schema first, so that the transaction begins."""
    db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    return int(pages)


def _check_intact(path: Path) -> None:
    with closing(open_for_reading(path, immutable=True)) as db:
        findings = check(db)
    if not findings:
        return
    first = next((each for each in findings if each.is_damage), findings[0])
    said = f"{first}{f' (and {len(findings) - 1} more)' if len(findings) > 1 else ''}"
    if first.is_damage:
        raise DamagedStoreError(f"the copy was not kept, because the memory is damaged: {said}")
    raise StorageError(f"the copy was not kept, because {said}; `memory-core doctor --repair` repairs what is derived")


def _synchronise(path: Path) -> None:
    """Sync a file or folder to disk. No connection has it open, so closing a descriptor of it drops no lock."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if target.exists():
        _require_store(target, overwrite=overwrite)
        _replace(temporary, target)
    else:
        temporary.rename(target)
    _synchronise(target.parent)


def _replace(temporary: Path, target: Path) -> None:
    """Replace a file that no other process has open, after its write-ahead log is merged into it and removed.

    SQLite would replay a remaining log into the new file.
    """
    with closing(sqlite3.connect(target, isolation_level=None, timeout=BUSY_SECONDS)) as old:
        try:
            old.execute("PRAGMA journal_mode = DELETE")  # only the last connection can do this
            old.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise
            raise StoreUnavailableError(
                f"the memory file {str(target)!r} is in use and cannot be replaced; close it first ({error})"
            ) from error
        temporary.rename(target)


def _reporter(loop: asyncio.AbstractEventLoop, progress: ProgressCallback | None, stopped: Event) -> Report:
    """Report progress from another thread and wait for the callback; an error it raises ends the copy."""

    def report(step: Progress) -> None:
        if stopped.is_set():
            raise StorageError("the copy was stopped because its caller was cancelled")
        if progress is not None:
            called: Future[None] = Future()
            loop.call_soon_threadsafe(_call, progress, step, called)
            called.result()

    return report


def _call(progress: ProgressCallback, step: Progress, called: Future[None]) -> None:
    try:
        progress(step)
    except BaseException as error:  # noqa: BLE001  (any error is raised again where the copy is made)
        called.set_exception(error)
    else:
        called.set_result(None)
