"""Convert records to rows and back, and detect rows that differ from what was written.

SQLite detects damage to its own structure, but returns a value with a flipped byte as if it were correct. So every row
that an export or a search returns carries a CRC-32, which detects any change of up to 32 neighbouring bits.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final, Protocol, TypeVar
from zlib import crc32

from memory_core.errors import DamagedStoreError, StoreUnavailableError
from memory_core.json_values import encode_json
from memory_core.models import MemoryRecord, OpenRecord, sealed
from memory_core.storage.shared.prepared import link_keys, micros, moment, to_links

T = TypeVar("T")

ADVICE: Final = "`Operator.check` lists all damage; restore the file from a backup"


def digest(*values: object) -> int:
    """The CRC-32 of some values of a row, each as text."""
    return crc32((form(len(values)) % values).encode("utf-8", "surrogateescape"))


@cache
def form(count: int) -> str:
    """The format string of the text that `digest` checks, for this number of values."""
    return "\x1f".join(["%s"] * count)


def piece_digest(key: int, n: int, start: int, stop: int) -> int:
    """The `digest` of a chunk's position; faster, because every add computes one."""
    return crc32(f"{key}\x1f{n}\x1f{start}\x1f{stop}".encode())


def has_whole_vector(vector: object, vector_digest: object) -> bool:
    """Whether a vector of the table `chunk` is as it was written, or NULL."""
    if vector is None or vector_digest is None:
        return vector is vector_digest
    return isinstance(vector, bytes) and crc32(vector) == vector_digest


def damaged(what: str) -> DamagedStoreError:
    """The error for a damaged part, in one sentence."""
    return DamagedStoreError(f"{what} is not as it was written; {ADVICE}")


def damaged_record(id: object) -> DamagedStoreError:  # noqa: A002  (the record's own word)
    """The error for a damaged record, whose id may be damaged as well."""
    return damaged(f"the record {id!a:.200}")


@contextmanager
def explaining(what: str) -> Generator[None]:
    """Turn errors from values without a digest into errors about damage.

    SQLite returns each value with the type stored in the row, so a damaged value may have any type.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
        raise damaged(what) from error


@contextmanager
def file_problems_explained(what: str) -> Generator[None]:
    """Turn errors of SQLite and of the system into errors of this library, in one sentence each."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema, which sqlite3 cannot decode
        raise damaged(f"the schema of {what}") from error
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.Error) and is_undecodable(error):
            raise damaged(f"text in {what}") from error
        raise StoreUnavailableError(f"{what} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise DamagedStoreError(f"{what} is damaged ({error}); restore it from a backup") from error


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
        raise damaged("text in the store") from error


def is_undecodable(error: sqlite3.Error) -> bool:
    """Whether sqlite3 reports text that is not UTF-8. Its message quotes the text, so it must not be passed on."""
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


COLUMNS: Final = (
    "id, text, role, kind, tier, author, data, tags, importance, confidence, emotion, created_at, updated_at, "
    "accessed_at, occurred_at, access_count, expires_at, valid_from, valid_to, state, source_key, rev, version, agent, "
    "session, collection, links, digest"
)
"""The columns of `record` that callers see, and their digest, in the order of `to_row` and `to_record`."""
NAMES: Final = tuple(COLUMNS.split(", "))
_SEEN: Final = len(NAMES) - 1
_FORM: Final = form(2 + _SEEN)


Row = tuple[Any, ...]
"""A row as sqlite3 returns and accepts it; its values are checked when they become a record."""


def to_row(record: MemoryRecord) -> Row:
    """The values of `COLUMNS`."""
    row = _values(record)
    return (*row, crc32((_FORM % (record.app, record.user, *row)).encode()))  # `digest`, inlined for speed


def _values(record: MemoryRecord) -> Row:
    created_at = micros(record.created_at)
    return (
        record.id,
        record.text,
        record.role,
        record.kind,
        record.tier,
        record.author,
        encode_json(record.data) if record.data else "{}",
        encode_json(record.tags) if record.tags else "[]",
        record.importance,
        record.confidence,
        record.emotion,
        created_at,
        created_at if record.updated_at is record.created_at else micros(record.updated_at),
        _optional_micros(record.accessed_at),
        created_at if record.occurred_at is record.created_at else micros(record.occurred_at),
        record.access_count,
        _optional_micros(record.expires_at),
        _optional_micros(record.valid_from),
        _optional_micros(record.valid_to),
        record.state,
        record.source_key,
        record.rev,
        record.version,
        record.agent,
        record.session,
        record.collection,
        encode_json(link_keys(record.links)) if record.links else "[]",
    )


def to_record(row: Row, app: str, user: str) -> MemoryRecord:
    """The record of a row that starts with `COLUMNS`.

    Raises:
        DamagedStoreError: The row, or the name of its owner, is not as it was written.
    """
    if not is_whole(row, app, user):
        raise damaged_record(row[0])
    created_at = moment(row[11])
    record = OpenRecord(
        id=row[0],
        text=row[1],
        role=row[2],
        kind=row[3],
        tier=row[4],
        author=row[5],
        data={} if row[6] == "{}" else json.loads(row[6]),
        tags=() if row[7] == "[]" else tuple(json.loads(row[7])),
        importance=row[8],
        confidence=row[9],
        emotion=row[10],
        created_at=created_at,
        updated_at=created_at if row[12] == row[11] else moment(row[12]),
        accessed_at=None if row[13] is None else moment(row[13]),
        occurred_at=created_at if row[14] == row[11] else moment(row[14]),
        access_count=row[15],
        expires_at=None if row[16] is None else moment(row[16]),
        valid_from=None if row[17] is None else moment(row[17]),
        valid_to=None if row[18] is None else moment(row[18]),
        state=row[19],
        source_key=row[20],
        rev=row[21],
        version=row[22],
        agent=row[23],
        session=row[24],
        collection=row[25],
        links=() if row[26] == "[]" else to_links(json.loads(row[26])),
        app=app,
        user=user,
    )
    return sealed(record)


def is_whole(row: Row, app: str, user: str) -> bool:
    """Whether a row that starts with `COLUMNS` is as it was written for this owner."""
    seen = _FORM % (app, user, *row[:_SEEN])
    return bool(crc32(seen.encode("utf-8", "surrogateescape")) == row[_SEEN])


def _optional_micros(value: datetime | None) -> int | None:
    return None if value is None else micros(value)
