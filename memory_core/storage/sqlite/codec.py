"""Convert records to rows and back; each row carries its digest (`damage.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final
from zlib import crc32

from memory_core.models import Link, MemoryRecord, OpenRecord, sealed
from memory_core.records.fields import FIELDS, OFFSET, Form
from memory_core.records.stored_links import stored_links, to_links
from memory_core.storage.shared.stored_forms import EPOCH, micros
from memory_core.storage.sqlite.damage import damaged_record, form
from memory_core.values.json_text import encode_json
from memory_core.values.times import at_offset, offset_of

_FIELD_NAMES: Final = tuple(field.name for field in FIELDS)
_SEEN_NAMES: Final = (*_FIELD_NAMES, OFFSET)
NAMES: Final = (*_SEEN_NAMES, "digest")
COLUMNS: Final = ", ".join(NAMES)
"""The columns of `record` that callers see, and their digest, in the order of `to_row` and `to_record`."""
_SEEN: Final = len(_SEEN_NAMES)
_FORM: Final = form(2 + _SEEN)
_values_of: Final = attrgetter(*_FIELD_NAMES)

_OCCURRED_AT: Final = _FIELD_NAMES.index("occurred_at")
_OFFSET: Final = len(_FIELD_NAMES)
_TIMES: Final = tuple(at for at, field in enumerate(FIELDS) if field.form == "time")


def links_in(column: str) -> tuple[Link, ...]:
    """The links in the column `links`."""
    return () if column == "[]" else to_links(json.loads(column))


_ENCODERS: Final[Mapping[Form, Callable[[Any], object]]] = {
    "flag": int,
    "data": encode_json,
    "tags": encode_json,
    "links": lambda value: encode_json(stored_links(value)),
}
_DECODERS: Final[Mapping[Form, Callable[[Any], object]]] = {
    "flag": bool,
    "data": json.loads,
    "tags": lambda value: tuple(json.loads(value)),
    "links": links_in,
}
_EMPTY: Final[Mapping[Form, tuple[str | int, Callable[[], object]]]] = {
    "flag": (0, bool),
    "data": ("{}", dict),
    "tags": ("[]", tuple),
    "links": ("[]", tuple),
}
"""The stored form of nothing, and the value that it becomes: most records have no tags and no links, and were not
left."""
_ENCODED: Final = tuple(
    (at, _EMPTY[field.form][0], _ENCODERS[field.form]) for at, field in enumerate(FIELDS) if field.form in _ENCODERS
)
_DECODED: Final[tuple[tuple[int, str | int, Callable[[], object], Callable[[Any], object]], ...]] = tuple(
    (at, _EMPTY[field.form][0], _EMPTY[field.form][1], _DECODERS[field.form])
    for at, field in enumerate(FIELDS)
    if field.form in _DECODERS
)

SqlRow = tuple[Any, ...]
"""A row as sqlite3 returns and accepts it; its values are checked when they become a record."""


def to_row(record: MemoryRecord) -> SqlRow:
    """The values of `COLUMNS`."""
    values: list[Any] = [*_values_of(record), offset_of(record.occurred_at)]
    last = stored = None
    for at in _TIMES:
        if (value := values[at]) is not None:
            if value is not last:  # most records have one time, several times
                last, stored = value, micros(value)
            values[at] = stored
    for at, empty, encoded in _ENCODED:
        values[at] = encoded(value) if (value := values[at]) else empty
    return (*values, crc32((_FORM % (record.app, record.user, *values)).encode()))  # `digest`, inlined for speed


def to_record(row: SqlRow, app: str, user: str) -> MemoryRecord:
    """The record of a row that starts with `COLUMNS`.

    Raises:
        DamagedStoreError: The row, or the name of its owner, is not as it was written.
    """
    if not is_whole(row, app, user):
        raise damaged_record(row[0])
    values: list[Any] = [*row[:_OFFSET], app, user]
    last = made = None
    for at in _TIMES:
        if (value := values[at]) is not None:
            if value != last:
                last, made = value, EPOCH + timedelta(0, 0, value)  # `moment`, inlined for speed
            values[at] = made
    if offset := row[_OFFSET]:
        values[_OCCURRED_AT] = at_offset(values[_OCCURRED_AT], offset)
    for at, empty, nothing, decoded in _DECODED:
        values[at] = nothing() if (value := values[at]) == empty else decoded(value)
    return sealed(OpenRecord(*values))


def is_whole(row: SqlRow, app: str, user: str) -> bool:
    """True if a row that starts with `COLUMNS` is as it was written for this owner."""
    seen = _FORM % (app, user, *row[:_SEEN])
    return bool(crc32(seen.encode("utf-8", "surrogateescape")) == row[_SEEN])
