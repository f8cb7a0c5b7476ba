"""Tells whether a write-ahead log belongs to the file beside which it lies.

SQLite replays every valid log that it finds beside a database, also one that another file of the same name has left
there: then pages of both are mixed. So every transaction gives the file a new *mark*, an entry of `meta` that also
names the mark before. The file itself has the mark of its last checkpoint, and SQLite starts a log from the beginning
only after a complete one. So a log belongs to a file if it has set or replaced the mark that the file has. A copy made
by `backup` begins with a mark of its own.

The log is read as a file (`log_format.py`): SQLite has locks on the database and on the -shm file only, so closing a
descriptor of the log drops none (`files.py`).
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from memory_core.errors import StoreUnavailableError
from memory_core.storage.sqlite import meta
from memory_core.storage.sqlite.log_format import header_of, pages_in

NAME: Final = "lineage"
"""The name of the mark in `meta`."""

_TAG: Final = bytes.fromhex("9d1f6ce5a27b4038")
"""Begins every mark, so that it is found in a page of the log."""
_BYTES: Final = 8
_NONE: Final = bytes(_BYTES)
"""The mark of an empty file, which the first mark names."""
_MARK_BYTES: Final = len(_TAG) + 2 * _BYTES + 4

_PAGE: Final = 2
"""The page of `meta`, which is the first table of the schema; VACUUM keeps the order."""
_TRIES: Final = 8
"""While other processes write, the log may begin again between two reads of it."""


class _Mark(NamedTuple):
    before: bytes
    this: bytes

    def packed(self) -> bytes:
        body = _TAG + self.before + self.this
        return body + crc32(body).to_bytes(4, "big")


def _unpacked(packed: bytes) -> _Mark | None:
    """The mark, if it is whole: another process may be writing it."""
    body, check = packed[:-4], packed[-4:]
    if len(packed) != _MARK_BYTES or not body.startswith(_TAG) or crc32(body) != int.from_bytes(check, "big"):
        return None
    ids = body[len(_TAG) :]
    return _Mark(ids[:_BYTES], ids[_BYTES:])


def stamp(db: sqlite3.Connection) -> None:
    """Give the file its next mark, inside a write transaction."""
    found = _read(db)
    _put(db, _NONE if found is None else found.this)


def begin(db: sqlite3.Connection) -> None:
    """Give a copy of a file a mark of its own, so that no log of the original belongs to it."""
    _put(db, _NONE)


def _put(db: sqlite3.Connection, before: bytes) -> None:
    meta.put(db, NAME, _Mark(before, secrets.token_bytes(_BYTES)).packed())


def _read(db: sqlite3.Connection) -> _Mark | None:
    row = db.execute("SELECT value FROM meta WHERE name = ?", (NAME,)).fetchone()
    return _unpacked(row[0]) if row is not None and isinstance(row[0], bytes) else None


def insist_on_own_log(path: Path) -> None:
    """Refuse a file beside which the write-ahead log of another one lies; changes nothing, and takes no locks.

    A log without marks is accepted, which another program has written; so is one that cannot be compared because the
    file is damaged.

    Args:
        path: The real path of the file, which may be missing.

    Raises:
        OSError: The log cannot be read.
        StoreUnavailableError: The log belongs to another file.
    """
    log = path.with_name(f"{path.name}-wal")
    suspected: tuple[bytes, bytes] | None = None
    for _ in range(_TRIES):
        generation = _generation(log)
        mark = None if generation is None else mark_of(path)
        if generation is None or mark is None:
            return
        # Of frames that were not complete before a loss of power, the header may be there and the page an older one.
        known = set(_marks_in(log, whole=False))
        if not known or mark in known or not any(_marks_in(log, whole=True)):
            return
        # What a live process writes may be read in part. The second time, the log would be read in full.
        if suspected == (generation, mark):
            raise _refusal(path, log)
        suspected = generation, mark


def _refusal(path: Path, log: Path) -> StoreUnavailableError:
    what = "was replaced by another one, such as a backup," if path.exists() else "is missing"
    return StoreUnavailableError(
        f"the memory file {str(path)!r} {what} and {str(log)!r}, the write-ahead log of the earlier file, was left "
        "beside it; SQLite would mix the changes in that log into this file. Nothing was changed: move that log to "
        "another folder, and open the memory again (only the earlier file can read the latest changes in it)"
    )


def mark_of(path: Path) -> bytes | None:
    """The mark in a file without its log; `None` if it has none that can be read.

    A loss of power while the log is merged can tear the page of the mark, which the log then restores.
    """
    try:
        if path.stat().st_size == 0:
            return _NONE
    except FileNotFoundError:
        return _NONE
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
            db.execute("PRAGMA writable_schema = ON")  # see `file_header`
            row = db.execute("SELECT value FROM meta WHERE name = ?", (NAME,)).fetchone()
    except (sqlite3.Error, UnicodeDecodeError):  # a damaged file, or one that is being written
        return None
    found = _unpacked(row[0]) if row is not None and isinstance(row[0], bytes) else None
    return None if found is None else found.this


def _generation(log: Path) -> bytes | None:
    """The header of the log, which differs each time it begins again; `None` without one."""
    try:
        with log.open("rb") as file:
            return header_of(file)
    except FileNotFoundError:
        return None


def _marks_in(log: Path, *, whole: bool) -> Iterator[bytes]:
    """The marks that the transactions in the log have set or replaced; with `whole`, those that SQLite would apply."""
    try:
        with log.open("rb") as file:
            for page in pages_in(file, _PAGE, whole=whole):
                start = page.find(_TAG)
                mark = _unpacked(page[start : start + _MARK_BYTES]) if start >= 0 else None
                if mark is not None:
                    yield from mark
    except FileNotFoundError:  # the last process has closed the file meanwhile
        return
