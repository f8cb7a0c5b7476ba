"""Find, check and create database files.

POSIX drops all locks of a process on a file when the process closes any descriptor of that file
(https://sqlite.org/howtocorrupt.html, 2.2). SQLite keeps such descriptors open; `open` and `os.open` do not. So only
SQLite opens a database here; everything else uses its path.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from memory_core.errors import NotAStoreError, StoreUnavailableError
from memory_core.storage.sqlite.connection import BUSY_MS
from memory_core.storage.sqlite.file_identity import Identity
from memory_core.storage.sqlite.lineage import insist_on_own_log
from memory_core.storage.sqlite.problems import file_problems_explained
from memory_core.storage.sqlite.schema import APPLICATION_ID, check_version, migrate

PAGE_BYTES: Final = 16_384
"""Rows take about a kilobyte with their vector, and larger pages read an owner in fewer steps."""


class Header(NamedTuple):
    """The fields of a database header that identify a store."""

    application: int
    version: int


def real_path(path: Path) -> Path:
    """The absolute path without symbolic links, so that it means the same file after a change of directory.

    Raises:
        StoreUnavailableError: The path cannot be resolved, for example `~name` of a user without a home directory.
    """
    try:
        return Path(os.path.realpath(path.expanduser()))
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreUnavailableError(f"the memory file {str(path)!r} cannot be used: {error}") from error


def find_or_create(path: Path) -> tuple[Path, Identity]:
    """The real path and the identity of a file; a missing file is created empty, in an existing folder.

    Raises:
        NotAStoreError: The path is not a file.
        StoreUnavailableError: The file cannot be reached, or has a second name. Nothing was changed.
    """
    with file_problems_explained(f"the memory file {str(path)!r}"):
        if "\0" in str(path):
            raise OSError("file names cannot contain NUL characters")
        path = real_path(path)
        if not path.exists():
            insist_on_own_log(path)
            if not path.parent.is_dir():
                raise StoreUnavailableError(
                    f"the memory file {str(path)!r} cannot be created: there is no folder {str(path.parent)!r}; create "
                    "it, or correct the path"
                )
            create(path)
    return find(path)


def find(path: Path) -> tuple[Path, Identity]:
    """The real path and the identity of an existing file; raises the errors of `find_or_create`."""
    with file_problems_explained(f"the memory file {str(path)!r}"):
        path = real_path(path)
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise NotAStoreError(f"{str(path)!r} is not a file; give the path of a memory file")
        if found.st_nlink > 1:
            raise StoreUnavailableError(
                f"the memory file {str(path)!r} has {found.st_nlink} names (hard links), and SQLite would keep a "
                "write-ahead log for each; remove the other names, or copy the file"
            )
    return path, Identity(found.st_dev, found.st_ino)


def create(path: Path) -> None:
    """Create an empty file that only its owner can read, whatever the umask; an existing file is left alone."""
    from tempfile import NamedTemporaryFile  # noqa: PLC0415  (most files exist, and it loads archive formats)

    with NamedTemporaryFile(dir=path.parent, prefix=".memory-") as private:  # SQLite copies its mode, 0600
        uri = f"{path.as_uri()}?modeof={quote(private.name)}"
        sqlite3.connect(uri, uri=True).close()


def prepare_file(path: Path) -> str:
    """Create the file if it is missing, or check that it is a store and migrate it; returns its real path.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: Nothing was changed.
    """
    path, _ = find_or_create(path)
    with file_problems_explained(f"the memory file {str(path)!r}"):
        if not os.access(path, os.R_OK | os.W_OK):
            raise StoreUnavailableError(f"the memory file {str(path)!r} is not readable and writable for this user")
        _require_store(path)
        insist_on_own_log(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000)) as db:
            db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            db.execute("PRAGMA secure_delete = ON")  # pages that a migration frees may contain text
            migrate(db)
    return str(path)


def file_header(path: Path) -> Header | None:
    """Read the header of a database without locking or changing anything; `None` if the file is not a database.

    The write-ahead log is not read. The application id never changes, so the header is enough to recognise a store;
    `migrate` checks the version again.

    Raises:
        OSError, sqlite3.OperationalError: The file cannot be read.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)) as db:
        try:
            # Without this, SQLite takes a file that another process is extending for a damaged one.
            db.execute("PRAGMA writable_schema = ON")
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            return None
    return Header(application, version)


def _require_store(path: Path) -> None:
    """Refuse a file that is not a store, before opening it in the usual way could change it."""
    if path.stat().st_size == 0:
        return  # created by touch, or by a process that was killed before its first write
    found = file_header(path)
    if found is None or found.application != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store; give another path, or move that file away")
    check_version(found.version)
