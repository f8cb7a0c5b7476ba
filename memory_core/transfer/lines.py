"""A record of an export as a JSON object, and back, with every value checked as if the record were added."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final

from memory_core.models import Draft, MemoryRecord, Scope
from memory_core.records.draft_to_record import complete
from memory_core.records.fields import CHECKS
from memory_core.storage.shared.transfer import Carried, Revision
from memory_core.values.checks import check_count, check_text, check_time

_DRAFT: Final = tuple(each.name for each in fields(Draft) if each.name != "passages")  # which are in the text
_TIMES: Final = ("created_at", "updated_at", "accessed_at")
_COUNTS: Final[Mapping[str, int]] = {"rev": 1, "version": 1, "access_count": 0}
"""Fields that count, and their least value."""
_LARGEST: Final = 2**53
"""The largest count: more than any store reaches, and exact everywhere."""


def to_json(item: Carried, *, vectors: bool) -> dict[str, Any]:
    """The JSON object of a record, with its earlier texts and, if asked for, its vectors."""
    found: dict[str, Any] = {"record": item.record.to_dict()}
    if item.revisions:
        found["earlier"] = [[rev, text, until.isoformat()] for rev, text, until in item.revisions]
    if vectors and item.vectors:
        found["vectors"] = [b64encode(vector).decode() for vector in item.vectors]
    return found


def from_json(value: Mapping[str, Any], seq: int, dimensions: int | None) -> Carried:
    """The record of a JSON object, in the form in which it would be stored.

    Args:
        seq: Its position in the order of arrival.
        dimensions: Of the vectors of the target's model; `None` leaves out the vectors.

    Raises:
        InvalidInputError, KeyError, TypeError, ValueError: It is no such object; the message says what is wrong.
    """
    record = MemoryRecord.from_dict(value["record"], place="record")
    draft = Draft(**{name: getattr(record, name) for name in _DRAFT})
    stored = complete(draft, Scope(record.app, record.user), check_time("created_at", record.created_at))
    changes: dict[str, Any] = {name: getattr(stored, name) for name in _DRAFT}  # by field name
    changes |= {name: check_time(name, at) for name in _TIMES if (at := getattr(record, name)) is not None}
    for name, least in _COUNTS.items():
        check_count(name, getattr(record, name), least, _LARGEST)
    for name in ("state", "left"):
        CHECKS[name](getattr(record, name))
    record = replace(record, **changes)
    earlier = tuple(_revision(*given) for given in value.get("earlier", ()))
    vectors = tuple(b64decode(each, validate=True) for each in value.get("vectors", ()))
    return Carried(record, seq, earlier, () if dimensions is None else _checked(vectors, dimensions))


def _checked(vectors: tuple[bytes, ...], dimensions: int) -> tuple[bytes, ...]:
    if not vectors:
        return ()
    from memory_core.retrieval.unit_vectors import unit_halves  # noqa: PLC0415  (only an import with vectors needs it)

    return unit_halves(vectors, dimensions)


def _revision(rev: object, text: object, until: str) -> Revision:
    moment = check_time("the time of an earlier text", datetime.fromisoformat(until))
    number = check_count("the rev of an earlier text", rev, 1, _LARGEST)
    return number, check_text("an earlier text", text), moment
