"""A row of the table of spade_llm's long-term memories as a record of the core, without loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from memory_core import Draft, InvalidInputError, Json, MemoryRecord, Scope, utc_now
from memory_core.adapting import MAX_TEXT_CHARS, check_key, check_unit, complete, new_id, with_context, zoned
from memory_spade.files.names import BASE_COLLECTION, identity
from memory_spade.files.tables import ORIGINAL

Row = dict[str, object]
T = TypeVar("T")


def record_of(row: Row) -> MemoryRecord:
    """Convert a row to a record; a value that is invalid in a record is kept in `data` and replaced by a default."""
    original: dict[str, Json] = {}

    def fitting(column: str, read: Callable[[object], T | None], instead: T) -> T:
        value = read(row[column])
        if value is None:
            original[column] = _json(row[column])
        return instead if value is None else value

    created = fitting("created_at", _moment, utc_now())
    accessed = fitting("last_accessed", _moment, created)
    count = fitting("access_count", _count, 0)
    agent = fitting("agent_id", _key, "unknown")
    context = None if row["context"] is None else fitting("context", _content, "")
    draft = Draft(
        with_context(fitting("content", _content, ""), context),
        id=fitting("id", _key, new_id()),
        kind=fitting("category", _key, "fact"),
        confidence=fitting("confidence", _unit, 1.0),
        data={} if context is None else {"context": context},
        occurred_at=created,
        agent=agent,
        collection=BASE_COLLECTION,
    )
    if original:
        draft = replace(draft, data={**draft.data, ORIGINAL: original})
    record = complete(draft, Scope(app="default", user=identity(agent)), created)
    return replace(record, accessed_at=accessed, access_count=count)


def _key(value: object) -> str | None:
    try:
        return check_key("a column", value)
    except InvalidInputError:
        return None


def _content(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and len(value) <= MAX_TEXT_CHARS else None


def _unit(value: object) -> float | None:
    try:
        return check_unit("confidence", value)
    except InvalidInputError:
        return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def _moment(value: object) -> datetime | None:
    """Parse a time. spade_llm writes local times without a zone; SQLite's default, which contains a space, is UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if value[10:11] == " " and moment.tzinfo is None else zoned(moment)
    except (ValueError, OverflowError):
        return None


def _json(value: object) -> Json:
    """Convert an SQLite value to JSON; bytes (text that is not UTF-8) become hexadecimal digits."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return value if value is None or (isinstance(value, int | float) and math.isfinite(value)) else str(value)
