"""Convert records to rows and back; each row carries its digest (`damage.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final
from zlib import crc32

from memory_core.models import MemoryRecord, OpenRecord, sealed
from memory_core.records.fields import FIELDS, Form
from memory_core.storage.shared.stored_forms import link_keys, micros, moment, to_links
from memory_core.storage.sqlite.damage import damaged_record, form
from memory_core.values.json_text import encode_json

_SEEN_NAMES: Final = tuple(field.name for field in FIELDS)
NAMES: Final = (*_SEEN_NAMES, "digest")
COLUMNS: Final = ", ".join(NAMES)
"""The columns of `record` that callers see, and their digest, in the order of `to_row` and `to_record`."""
_SEEN: Final = len(_SEEN_NAMES)
_FORM: Final = form(2 + _SEEN)
_values_of: Final = attrgetter(*_SEEN_NAMES)

_TIMES: Final = tuple(at for at, field in enumerate(FIELDS) if field.form == "time")
_ENCODERS: Final[Mapping[Form, Callable[[Any], object]]] = {
    "data": lambda value: encode_json(value) if value else "{}",
    "tags": lambda value: encode_json(value) if value else "[]",
    "links": lambda value: encode_json(link_keys(value)) if value else "[]",
}
_DECODERS: Final[Mapping[Form, Callable[[Any], object]]] = {
    "data": lambda value: {} if value == "{}" else json.loads(value),
    "tags": lambda value: () if value == "[]" else tuple(json.loads(value)),
    "links": lambda value: () if value == "[]" else to_links(json.loads(value)),
}
_ENCODED: Final = tuple((at, _ENCODERS[field.form]) for at, field in enumerate(FIELDS) if field.form in _ENCODERS)
_DECODED: Final = tuple((at, _DECODERS[field.form]) for at, field in enumerate(FIELDS) if field.form in _DECODERS)

Row = tuple[Any, ...]
"""A row as sqlite3 returns and accepts it; its values are checked when they become a record."""


def to_row(record: MemoryRecord) -> Row:
    """The values of `COLUMNS`."""
    values = list(_values_of(record))
    for at in _TIMES:
        if (value := values[at]) is not None:
            values[at] = micros(value)
    for at, encoded in _ENCODED:
        values[at] = encoded(values[at])
    return (*values, crc32((_FORM % (record.app, record.user, *values)).encode()))  # `digest`, inlined for speed


def to_record(row: Row, app: str, user: str) -> MemoryRecord:
    """The record of a row that starts with `COLUMNS`.

    Raises:
        DamagedStoreError: The row, or the name of its owner, is not as it was written.
    """
    if not is_whole(row, app, user):
        raise damaged_record(row[0])
    values = list(row[:_SEEN])
    for at in _TIMES:
        if (value := values[at]) is not None:
            values[at] = moment(value)
    for at, decoded in _DECODED:
        values[at] = decoded(values[at])
    return sealed(OpenRecord(*values, app, user))


def is_whole(row: Row, app: str, user: str) -> bool:
    """Whether a row that starts with `COLUMNS` is as it was written for this owner."""
    seen = _FORM % (app, user, *row[:_SEEN])
    return bool(crc32(seen.encode("utf-8", "surrogateescape")) == row[_SEEN])
