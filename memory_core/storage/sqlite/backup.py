"""Copies of a whole file: made while it is used, checked, on disk, and only then under their names."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from memory_core.errors import (
    DamagedStoreError,
    InvalidInputError,
    NotAStoreError,
    StorageError,
    StoreUnavailableError,
)
from memory_core.progress import Progress, ProgressCallback
from memory_core.storage.sqlite.checking import check
from memory_core.storage.sqlite.connection import IN_MEMORY, Connection
from memory_core.storage.sqlite.files import file_header, file_problems_explained, find, real_path
from memory_core.storage.sqlite.read_connection import connect_for_reading, open_for_reading
from memory_core.storage.sqlite.schema import APPLICATION_ID
from memory_core.storage.sqlite.snapshot import snapshot
from memory_core.threads import in_thread

SLICE_PAGES: Final = 256
"""Copied at a time: 4 MiB, after which somebody is told and a cancellation is noticed."""
BUSY_SECONDS: Final = 1.0
"""How long a file that is to be replaced may still be in use."""

_BESIDE: Final = ("-wal", "-journal", "-shm")
"""What SQLite keeps beside a file and takes for a part of it."""

Tell = Callable[[Progress], None]


async def copy(
    source: Connection, path: str | os.PathLike[str], *, overwrite: bool, progress: ProgressCallback | None
) -> Path:
    """Copy what a connection reads to a file; see `Memory.backup`.

    The connection holds one state of the file all the while, which keeps nobody from writing.
    """
    target = await in_thread(partial(_target, Path(path), overwrite=overwrite))
    stopped = Event()
    tell = _teller(asyncio.get_running_loop(), progress, stopped)
    try:
        await source.run(partial(_copy, target=target, overwrite=overwrite, tell=tell))
    except asyncio.CancelledError:
        stopped.set()  # the thread gives up at the next slice
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
    name, _ = await in_thread(partial(find, Path(backup)))
    source = await connect_for_reading(name, follow=False)
    try:
        return await copy(source, path, overwrite=overwrite, progress=progress)
    finally:
        await source.close()


def _target(path: Path, *, overwrite: bool) -> Path:
    """The real path of the file to be made, whose folder is made if it is missing."""
    if str(path) == IN_MEMORY:
        raise InvalidInputError("':memory:' is not a file; give the path of one")
    with file_problems_explained(f"the file {str(path)!r}"):
        path = real_path(path)
        if path.exists():
            _insist_on_store(path, overwrite=overwrite)
        elif left := [beside for end in _BESIDE if (beside := path.with_name(path.name + end)).exists()]:
            raise StoreUnavailableError(
                f"{str(left[0])!r} belongs to an earlier file of this name and would be taken for a part of the new "
                "one; move it away, or give another path"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _insist_on_store(path: Path, *, overwrite: bool) -> None:
    if not overwrite:
        raise InvalidInputError(f"there is a file {str(path)!r} already; give another path, or overwrite=True")
    found = file_header(path) if path.is_file() else None
    if found is None or found.application != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store, or a damaged one; move it away first")


def _copy(db: sqlite3.Connection, *, target: Path, overwrite: bool, tell: Tell) -> None:
    with file_problems_explained(f"the file {str(target)!r}"), _temporary(target) as temporary:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as new, snapshot(db):
            new.execute("PRAGMA journal_mode = OFF")  # what is interrupted is thrown away
            new.execute("PRAGMA synchronous = OFF")  # and what is complete is synchronised below
            pages = _pages(db)
            tell(Progress(0, pages, "copying"))
            db.backup(new, pages=SLICE_PAGES, progress=partial(_tell_copied, tell))
        tell(Progress(pages, pages, "checking"))
        _insist_on_whole(temporary)
        _synchronise(temporary)
        tell(Progress(pages, pages))
        _put_in_place(temporary, target, overwrite=overwrite)


def _tell_copied(tell: Tell, _: int, left: int, pages: int) -> None:
    tell(Progress(pages - left, pages, "copying"))


def _pages(db: sqlite3.Connection) -> int:
    """How many pages the file has, asked of the schema first, which makes the transaction begin."""
    db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    return int(pages)


@contextmanager
def _temporary(target: Path) -> Generator[Path]:
    """An empty file beside the target, which only its owner can read; in the end it is renamed or gone."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    os.close(descriptor)  # nobody has locks on a file that is new
    try:
        yield Path(name)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _insist_on_whole(path: Path) -> None:
    with closing(open_for_reading(path, immutable=True)) as db:
        findings = check(db)
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise DamagedStoreError(f"the copy was not kept, because the memory is damaged: {findings[0]}{more}")


def _synchronise(path: Path) -> None:
    """Make a file or folder durable. No connection has this file open, so a descriptor of it harms no lock."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if target.exists():
        _insist_on_store(target, overwrite=overwrite)
        _replace(temporary, target)
    else:
        temporary.rename(target)
    _synchronise(target.parent)


def _replace(temporary: Path, target: Path) -> None:
    """Put a file in the place of one that nobody else has open, with its write-ahead log folded in and gone.

    A log that stayed behind would be replayed into the new file.
    """
    with closing(sqlite3.connect(target, isolation_level=None, timeout=BUSY_SECONDS)) as old:
        try:
            old.execute("PRAGMA journal_mode = DELETE")  # which only the last connection can do
            old.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(
                f"the memory file {str(target)!r} is in use and cannot be replaced; close it first ({error})"
            ) from error
        temporary.rename(target)


def _teller(loop: asyncio.AbstractEventLoop, progress: ProgressCallback | None, stopped: Event) -> Tell:
    """Tell from another thread, and wait until it is said: what the callback raises ends the copy."""

    def tell(step: Progress) -> None:
        if stopped.is_set():
            raise StorageError("the copy was given up, because nobody waits for it any more")
        if progress is not None:
            said: Future[None] = Future()
            loop.call_soon_threadsafe(_say, progress, step, said)
            said.result()

    return tell


def _say(progress: ProgressCallback, step: Progress, said: Future[None]) -> None:
    try:
        progress(step)
    except BaseException as error:  # noqa: BLE001  (whatever it was, it is raised where the copy is made)
        said.set_exception(error)
    else:
        said.set_result(None)
