"""Damage: how it is noticed that a row is not what was written, and what is said then.

SQLite notices damage to its own structure. A flipped byte inside a value it returns as if it had always been there, so
every row that an export or a search returns carries a CRC-32, which finds any change of up to 32 neighbouring bits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Final, Protocol, TypeVar
from zlib import crc32

from memory_core.errors import DamagedStoreError

T = TypeVar("T")

ADVICE: Final = "`Operator.check` lists all damage; restore the file from a backup"


def digest(*values: object) -> int:
    """The CRC-32 of some values of a row, each as text."""
    return crc32((form(len(values)) % values).encode("utf-8", "surrogateescape"))


@cache
def form(count: int) -> str:
    """How so many values become the text that `digest` is of."""
    return "\x1f".join(["%s"] * count)


def piece_digest(key: int, n: int, start: int, stop: int) -> int:
    """`digest`, of where a piece of a text is; every add computes one."""
    return crc32(f"{key}\x1f{n}\x1f{start}\x1f{stop}".encode())


def has_whole_vector(vector: object, vector_digest: object) -> bool:
    """Whether a vector of the table `chunk`, if there is one, is as it was written."""
    if vector is None or vector_digest is None:
        return vector is vector_digest
    return isinstance(vector, bytes) and crc32(vector) == vector_digest


def damaged(what: str) -> DamagedStoreError:
    """The error that says so, in one sentence."""
    return DamagedStoreError(f"{what} is not as it was written; {ADVICE}")


def damaged_record(id: object) -> DamagedStoreError:  # noqa: A002  (the record's own word)
    """The error about one record, whose id may be damaged as well."""
    return damaged(f"the record {id!a:.200}")


@contextmanager
def explaining(what: str) -> Generator[None]:
    """For values without a digest: what Python says about those that make no sense becomes an error about damage.

    SQLite gives every value the type that the row says it has, so a damaged one may be of any type.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
        raise damaged(what) from error


class Reading(Protocol):
    """A way to run work that reads."""

    def __call__(self, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        """Run it and return its result."""
        ...


def reading(work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
    """Run `work`; if it meets text that is not UTF-8, find out in a second run which record that belongs to."""
    try:
        return work(db)
    except sqlite3.OperationalError as error:
        if not is_undecodable(error):
            raise
        with lenient(db):
            work(db)  # which raises as soon as it compares a digest
        raise damaged("text in the store") from error


def is_undecodable(error: sqlite3.Error) -> bool:
    """Whether sqlite3 complains about text that is not UTF-8; it then quotes the text, which no message may do."""
    return getattr(error, "sqlite_errorcode", None) is None and "decode" in str(error)


@contextmanager
def lenient(db: sqlite3.Connection) -> Generator[None]:
    """Read text that is not UTF-8 as well, with lone surrogates in it, so that no digest fits it."""
    before, db.text_factory = db.text_factory, _decode
    try:
        yield
    finally:
        db.text_factory = before


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
