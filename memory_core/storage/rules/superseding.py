"""Retire the stored records that new ones supersede, and reinstate them when that is taken back.

A record is retired by the link of the one that supersedes it: with the link it goes, and without it it is as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memory_core.models import MemoryRecord, Scope
from memory_core.records.superseding import already_superseded, insist_on_seen, reinstated, retired, superseded_by
from memory_core.storage.rules.finding import find
from memory_core.storage.rules.rows import Rows


def retire(rows: Rows, scope: Scope, new: Iterable[MemoryRecord], versions: Mapping[str, int] | None = None) -> None:
    """Retire the records in scope that these supersede; what is out of scope or gone stays as it is.

    Args:
        versions: The version in which a record was seen, by id: another one is not retired.

    Raises:
        ConflictError: A record has another version, or is gone.
        SupersededError: Another record of the owner has superseded one of them.
    """
    for record in new:
        for old in superseded_by(record) if record.links else ():
            if old != record.id:  # a put may replace the very record that it names
                _retire_one(rows, scope, old, record, (versions or {}).get(old))


def reinstate(rows: Rows, scope: Scope, before: MemoryRecord, after: MemoryRecord) -> None:
    """Bring back the records in scope that this one superseded before it changed and does not supersede any more."""
    for old in set(superseded_by(before)).difference(superseded_by(after)):
        row = find(rows, scope, old, after.updated_at)
        if row is not None and (restored := reinstated(row.record, after.updated_at)) is not row.record:
            rows.overwrite([(row, restored)])


def _retire_one(rows: Rows, scope: Scope, old: str, new: MemoryRecord, expected: int | None) -> None:
    row = find(rows, scope, old, new.created_at)
    insist_on_seen(old, None if row is None else row.record, expected)
    if any(old in superseded_by(row.record) for row in rows.linking_to({old}) if row.record.id != new.id):
        raise already_superseded(old)
    if row is not None and (after := retired(row.record, new)) is not row.record:
        rows.overwrite([(row, after)])
