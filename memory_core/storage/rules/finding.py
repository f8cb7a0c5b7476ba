"""Find a stored record, if a scope reaches it."""

from __future__ import annotations

from datetime import datetime

from memory_core.models import MemoryRecord, Scope
from memory_core.storage.rules.rows import Row, Rows
from memory_core.storage.shared.merging import reaches


def find(rows: Rows, scope: Scope, id: str, now: datetime) -> Row | None:  # noqa: A002  (the record's own word)
    """The row of an id, if the record is in scope and has not expired."""
    return next((row for row in rows.with_ids([id]) if is_visible(scope, row.record, now)), None)


def is_visible(scope: Scope, record: MemoryRecord, now: datetime) -> bool:
    """True if a record of the owner is in scope and has not expired."""
    return reaches(scope, record) and (record.expires_at is None or record.expires_at > now)
