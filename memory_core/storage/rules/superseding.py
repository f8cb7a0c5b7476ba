"""Retire the stored records that new ones supersede."""

from __future__ import annotations

from collections.abc import Iterable

from memory_core.models import MemoryRecord, Scope
from memory_core.records.superseding import already_superseded, retired, superseded_by
from memory_core.storage.rules.changing import find
from memory_core.storage.rules.rows import Rows


def retire(rows: Rows, scope: Scope, new: Iterable[MemoryRecord]) -> None:
    """Retire the records in scope that these supersede; what is out of scope or gone stays as it is.

    Raises:
        SupersededError: Another record of the owner has superseded one of them.
    """
    for record in new:
        for old in superseded_by(record) if record.links else ():
            if old != record.id:  # a put may replace the very record that it names
                _retire_one(rows, scope, old, record)


def _retire_one(rows: Rows, scope: Scope, old: str, new: MemoryRecord) -> None:
    if any(old in superseded_by(row.record) for row in rows.linking_to({old}) if row.record.id != new.id):
        raise already_superseded(old)
    row = find(rows, scope, old, new.created_at)
    if row is not None and (after := retired(row.record, new)) is not row.record:
        rows.overwrite([(row, after)])
