"""The database file as the system sees it: which file a path means, whether it is ours, and how it comes into being.

POSIX drops all locks of a process on a file when the process closes any descriptor of that file
(https://sqlite.org/howtocorrupt.html, 2.2). SQLite knows and keeps such descriptors open; `open` and `os.open` do not.
So nothing here opens a database except through SQLite; everything else is asked of the path.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NamedTuple
from urllib.parse import quote

from memory_core.errors import DamagedStoreError, NotAStoreError, StoreUnavailableError
from memory_core.storage.sqlite.damage import damaged, is_undecodable
from memory_core.storage.sqlite.schema import APPLICATION_ID, check_version, migrate

BUSY_MS: Final = 30_000
"""How long a writer waits for another process's transaction."""
PAGE_BYTES: Final = 16_384
"""Rows are about a kilobyte with their vector; larger pages read an owner in fewer steps."""


class Identity(NamedTuple):
    """What makes a file the same one under every name."""

    device: int
    inode: int


class Header(NamedTuple):
    """What the first page of a database says."""

    application: int
    version: int


@contextmanager
def file_problems_explained(what: str) -> Generator[None]:
    """Say in one sentence what SQLite or the system reports."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except UnicodeDecodeError as error:  # SQLite quotes a damaged schema in its message, and sqlite3 cannot decode that
        raise damaged(f"the schema of {what}") from error
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.Error) and is_undecodable(error):
            raise damaged(f"text in {what}") from error
        raise StoreUnavailableError(f"{what} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise DamagedStoreError(f"{what} is damaged ({error}); restore it from a backup") from error


def real_path(path: Path) -> Path:
    """The absolute path without symbolic links, so that it stays the same file when the process changes its directory.

    Raises:
        StoreUnavailableError: There is no such path, for example below `~somebody` who has no home directory.
    """
    try:
        return Path(os.path.realpath(path.expanduser()))
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreUnavailableError(f"the memory file {str(path)!r} cannot be used: {error}") from error


def identity(path: Path) -> Identity | None:
    """Which file is at the path now, if there is one."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return Identity(found.st_dev, found.st_ino)


def find_or_create(path: Path) -> tuple[Path, Identity]:
    """The real path of a file and which one it is; an empty file is made where there is none, with its folder.

    Raises:
        NotAStoreError: There is something else than a file at the path.
        StoreUnavailableError: The file cannot be reached, or has a second name. Nothing was touched.
    """
    with file_problems_explained(f"the memory file {str(path)!r}"):
        if "\0" in str(path):
            raise OSError("a NUL character is in no file's name")
        path = real_path(path)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            create(path)
    return find(path)


def find(path: Path) -> tuple[Path, Identity]:
    """The real path of a file that is there and which one it is; raises what `find_or_create` raises."""
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
    """Make an empty file that only its owner can read, whatever the umask; nothing happens if there is one."""
    with NamedTemporaryFile(dir=path.parent, prefix=".memory-") as private:  # SQLite takes its mode, which is 0600
        uri = f"{path.as_uri()}?modeof={quote(private.name)}"
        sqlite3.connect(uri, uri=True).close()


def prepare_file(path: Path) -> str:
    """Make the file if it is missing, else make sure it is a store of ours; bring it up to date and return its name.

    Raises:
        NotAStoreError, NewerStoreError, StoreUnavailableError: Each in one sentence; nothing was touched.
    """
    path, _ = find_or_create(path)
    with file_problems_explained(f"the memory file {str(path)!r}"):
        if not os.access(path, os.R_OK | os.W_OK):
            raise StoreUnavailableError(f"the memory file {str(path)!r} is not readable and writable for this user")
        _insist_on_store(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000)) as db:
            db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            db.execute("PRAGMA secure_delete = ON")  # what a migration drops may hold words
            migrate(db)
    return str(path)


def file_header(path: Path) -> Header | None:
    """What the first page of the file says, without locking or changing anything; `None` if it is no database.

    What only the write-ahead log knows is not seen. The identity of an application never changes, so that is enough to
    recognise a file; `migrate` looks at the version again.

    Raises:
        OSError, sqlite3.OperationalError: The file cannot be read.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)) as db:
        try:
            # Otherwise a file that another process is just extending counts as damaged.
            db.execute("PRAGMA writable_schema = ON")
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            return None
    return Header(application, version)


def _insist_on_store(path: Path) -> None:
    """Refuse a file of somebody else; opening it in the usual way could already change it."""
    if path.stat().st_size == 0:
        return  # made by touch, or by a process that was killed before it wrote anything
    found = file_header(path)
    if found is None or found.application != APPLICATION_ID:
        raise NotAStoreError(f"{str(path)!r} is not a memory store; give another path, or move that file away")
    check_version(found.version)
