"""Convert records to rows and back; each row carries its digest (`damage.py`)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from zlib import crc32

from memory_core.models import MemoryRecord, OpenRecord, sealed
from memory_core.storage.shared.stored_forms import link_keys, micros, moment, to_links
from memory_core.storage.sqlite.damage import damaged_record, form
from memory_core.values.json_text import encode_json

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
