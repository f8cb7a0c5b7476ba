"""Detect rows that differ from what was written, and say so.

SQLite detects damage to its own structure, but returns a value with a flipped byte as if it were correct. So every row
that an export or a search returns carries a CRC-32, which detects any change of up to 32 neighbouring bits.

**Only a checksum, `SQLITE_CORRUPT` or `SQLITE_NOTADB` proves damage.** Nothing else is called damage or advises a
backup: a value without a checksum that cannot be used, or rows that contradict each other, may as well be a defect of
this library, and `Operator.check` tells the two apart (`Finding.is_damage`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Final
from zlib import crc32

from memory_core.errors import DamagedStoreError, StorageError

ADVICE: Final = "`Operator.check` lists all damage; restore the file from a backup"


def digest(*values: object) -> int:
    """The CRC-32 of some values of a row, each as text."""
    return crc32((form(len(values)) % values).encode("utf-8", "surrogateescape"))


@cache
def form(count: int) -> str:
    """The format string of the text that `digest` checks, for this number of values."""
    return "\x1f".join(["%s"] * count)


def has_whole_vector(vector: object, vector_digest: object) -> bool:
    """True if a vector of the table `chunk` is as it was written, or NULL."""
    if vector is None or vector_digest is None:
        return vector is vector_digest
    return isinstance(vector, bytes) and crc32(vector) == vector_digest


def damaged(what: str) -> DamagedStoreError:
    """The error for a part whose checksum does not fit, in one sentence."""
    return DamagedStoreError(f"{what} is not as it was written; {ADVICE}")


def damaged_record(id: object) -> DamagedStoreError:  # noqa: A002  (the record's own word)
    """The error for a damaged record, whose id may be damaged as well."""
    return damaged(f"the record {id!a:.200}")


def unreadable(what: str) -> StorageError:
    """The error for values without a checksum that cannot be used, in one sentence."""
    return StorageError(f"{what} cannot be read; `Operator.check` says whether the file is damaged")


@contextmanager
def explaining(what: str) -> Generator[None]:
    """Turn errors from values without a checksum into an error that names them.

    SQLite returns each value with the type stored in the row, so a damaged value may have any type.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
        raise unreadable(what) from error
