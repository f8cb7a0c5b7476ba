"""Update one record, inside the writer's transaction."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from memory_core.errors import RecordNotFoundError
from memory_core.models import MemoryRecord, Patch, Scope
from memory_core.records.draft_to_record import insist_on_version, patched
from memory_core.storage.shared import merging
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.sqlite import listing, writing


def update(
    db: sqlite3.Connection,
    *,
    scope: Scope,
    patch: Patch,
    item: Prepared,
    now: datetime,
    expected_version: int | None,
) -> MemoryRecord:
    """Apply a patch to the current record, which may be newer than the one that was prepared."""
    known = listing.one(db, scope, item.record.id, micros(now))
    if known is None:
        raise RecordNotFoundError(f"there is no memory {item.record.id!r}")
    owner, key, before = known
    insist_on_version(before, expected_version)
    record = patched(before, patch, now)
    if record is before:
        return record
    if not merging.is_searched_differently(before, record):
        writing.overwrite_fields(db, owner, key, record)
    elif record == item.record:
        writing.rewrite(db, owner, key, item)
    else:
        writing.rewrite(db, owner, key, item.again(record))
    return record
