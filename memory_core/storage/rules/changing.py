"""Change one stored record."""

from __future__ import annotations

from datetime import datetime

from memory_core.errors import RecordNotFoundError
from memory_core.models import MemoryRecord, Patch, Scope
from memory_core.records.draft_to_record import insist_on_version, patched
from memory_core.storage.rules.deriving import as_changed, follow, uncover
from memory_core.storage.rules.finding import find
from memory_core.storage.rules.rows import Row, Rows
from memory_core.storage.rules.superseding import reinstate
from memory_core.storage.shared.merging import is_searched_differently
from memory_core.storage.shared.prepared import Prepared


def change(rows: Rows, row: Row, record: MemoryRecord, item: Prepared) -> Row:
    """Write a newer version of a stored record, in the cheapest way, and what follows for what was made of its words;
    returns its row.

    Args:
        item: Prepared for this record or an older version of it.
    """
    if not is_searched_differently(row.record, record):
        rows.overwrite([(row, record)])
    elif record == item.record:
        rows.rewrite(row, item)
    else:
        rows.rewrite(row, item.again(record))
    follow(rows, row.record, record)
    uncover(rows, row.record, record)
    return Row(row.key, record)


def update(
    rows: Rows, scope: Scope, patch: Patch, item: Prepared, now: datetime, expected_version: int | None
) -> MemoryRecord:
    """Apply a patch to a record, if it has the expected version or none is given.

    Args:
        item: Prepared for the record with the patch, or for an older version of it; names the record.

    Raises:
        RecordNotFoundError: There is no such record in scope.
        ConflictError: It has another version (`draft_to_record.insist_on_version`).
    """
    row = find(rows, scope, item.record.id, now)
    if row is None:
        raise RecordNotFoundError(f"there is no memory {item.record.id!r}")
    insist_on_version(row.record, expected_version)
    record = patched(row.record, patch, now)
    if record is row.record:
        return record
    record = as_changed(rows, row.record, record, patch)
    reinstate(rows, scope, row.record, record)
    return change(rows, row, record, item).record
