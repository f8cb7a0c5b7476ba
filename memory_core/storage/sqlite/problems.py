"""Turn errors of SQLite and of the system into errors of this library."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from memory_core.errors import DamagedStoreError, StoreUnavailableError
from memory_core.storage.sqlite.damage import unreadable

T = TypeVar("T")


@contextmanager
def file_problems_explained(what: str) -> Generator[None]:
    """Turn errors of SQLite and of the system into errors of this library, in one sentence each."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema, which sqlite3 cannot decode
        raise unreadable(f"the schema of {what}") from error
    except MemoryError as error:  # what sqlite3 raises if SQLite gets no memory
        raise StoreUnavailableError(f"{what} cannot be used: there is no memory left for SQLite") from error
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, sqlite3.Error) and is_undecodable(error):
            raise unreadable(f"text in {what}") from error
        if proves_damage(error):
            raise DamagedStoreError(f"{what} is damaged ({error}); restore it from a backup") from error
        raise StoreUnavailableError(f"{what} cannot be used: {error}") from error


def proves_damage(error: Exception) -> bool:
    """True if SQLite itself says that what it reads is not what it wrote."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # sqlite3's own errors and those of others have none
    return code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class Reading(Protocol):
    """Runs work that reads."""

    def __call__(self, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        """Run it and return its result."""
        ...


def reading(work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
    """Run `work`; if it meets text that is not UTF-8, find the record in a second run."""
    try:
        return work(db)
    except sqlite3.OperationalError as error:
        if not is_undecodable(error):
            raise
        with lenient(db):
            work(db)  # raises at the first digest that does not fit
        raise unreadable("text in the store") from error


def is_undecodable(error: sqlite3.Error) -> bool:
    """True if sqlite3 reports text that is not UTF-8. Its message quotes the text, so it must not be passed on."""
    return getattr(error, "sqlite_errorcode", None) is None and "decode" in str(error)


@contextmanager
def lenient(db: sqlite3.Connection) -> Generator[None]:
    """Read text that is not UTF-8 with lone surrogates in it, so that its digest does not fit."""
    before, db.text_factory = db.text_factory, _decode
    try:
        yield
    finally:
        db.text_factory = before


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
