"""The writes of a key-value store, on records with a `source_key` as their key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memory_core.models import MemoryRecord, Scope
from memory_core.storage.rules.deleting import delete, sweep
from memory_core.storage.rules.deriving import follow, insist_on_sources, restated, uncover
from memory_core.storage.rules.finding import is_visible
from memory_core.storage.rules.rows import Row, Rows
from memory_core.storage.rules.superseding import retire
from memory_core.storage.shared.merging import insist_on_reach, owner_of, replacing
from memory_core.storage.shared.prepared import Prepared
from memory_core.where.where import ANY_STATE


def put(
    rows: Rows, scope: Scope, items: Sequence[Prepared], remove: Collection[str], now: datetime
) -> list[MemoryRecord]:
    """Write records under their source keys and delete those of the source keys in `remove`.

    A record with a known source key replaces the existing record entirely, except for `id`, `created_at` and the read
    counts; `rev` is incremented if the text differs, and searches never find the old text. If two records have the same
    source key, the later one wins. Forgotten keys can be put, and removed keys are not forgotten; unknown keys in
    `remove` are ignored. Superseded records are retired as by `add`.

    Returns:
        The stored record for each record, in order.

    Raises:
        DuplicateIdError: A source key belongs to a record outside the scope, or a new record's id is taken.
    """
    sweep(rows, owner_of(scope), now, [item.record for item in items])
    if remove:
        delete(rows, scope, replace(ANY_STATE, source_keys=tuple(remove)), now, forget=None)
    latest = {item.record.source_key or "": item for item in items}
    known: Mapping[str, Row | None] = rows.with_source_keys(list(latest)) if latest else {}
    stored: dict[str, MemoryRecord] = {}
    new: list[Prepared] = []
    for source, item in latest.items():
        row = known.get(source)
        if row is None:
            new.append(item)
            stored[source] = item.record
        else:
            insist_on_reach(scope, row.record)
            stored[source] = record = restated(rows, row.record, replacing(row.record, item.record))
            rows.rewrite(row, item._replace(record=record))
            follow(rows, row.record, record)
            uncover(rows, row.record, record)
    if new:
        insist_on_sources(rows, [item.record for item in new])
        rows.append(new)
    retire(rows, scope, stored.values())
    return [stored[item.record.source_key or ""] for item in items]


def postpone(rows: Rows, scope: Scope, expiries: Mapping[str, datetime | None], now: datetime) -> None:
    """Set `expires_at` by id, and nothing else; ids that are unknown, out of scope or expired are ignored."""
    rows.overwrite(
        [
            (row, replace(row.record, expires_at=expiries[row.record.id], version=row.record.version + 1))
            for row in rows.with_ids(list(expiries))
            if is_visible(scope, row.record, now) and row.record.expires_at != expiries[row.record.id]
        ]
    )
