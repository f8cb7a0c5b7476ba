"""Add records: which are new, which update a known source key, and which were forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_core.models import MemoryRecord, Scope
from memory_core.storage.rules.changing import change
from memory_core.storage.rules.deleting import sweep
from memory_core.storage.rules.deriving import insist_on_sources, restated
from memory_core.storage.rules.rows import Row, Rows
from memory_core.storage.rules.superseding import retire
from memory_core.storage.shared.merging import insist_on_reach, merged, owner_of, updated
from memory_core.storage.shared.prepared import Prepared


def add(
    rows: Rows, scope: Scope, items: Sequence[Prepared], versions: Mapping[str, int] | None = None
) -> list[MemoryRecord | None]:
    """Write records, in order. Those that a new record supersedes are retired with it (`superseding.retired`).

    Args:
        items: At least one; the first was made at the time of the write.
        versions: By id: a superseded record is retired only in this version.

    Returns:
        The stored records: for a known source key the existing record, with the new text, author, data and tags if they
        differ; `None` for a forgotten source key.

    Raises:
        ConflictError: A record named in `versions` has another version or is gone; nothing is written.
        DuplicateIdError: An id is taken by a record with another source key.
        SupersededError: Another record has superseded one of them already.
    """
    sweep(rows, owner_of(scope), items[0].record.created_at, [item.record for item in items])
    sources = [item.record.source_key for item in items if item.record.source_key is not None]
    known = dict(rows.with_source_keys(sources)) if sources else {}
    new: list[Prepared] = []
    position_of: dict[str, int] = {}  # in `new`, by source key
    results: list[MemoryRecord | int | None] = []  # a number stands for the record at that position of `new`
    for item in items:
        source = item.record.source_key
        if source is not None and source in position_of:
            position = position_of[source]
            new[position] = merged(new[position], item)
            results.append(position)
        elif source is None or source not in known:
            if source is not None:
                position_of[source] = len(new)
            results.append(len(new))
            new.append(item)
        elif (row := known[source]) is None:
            results.append(None)
        else:
            known[source] = row = _bring_up_to_date(rows, scope, row, item)  # the key may be repeated in the batch
            results.append(row.record)
    if new:
        insist_on_sources(rows, [item.record for item in new])
        rows.append(new)
        retire(rows, scope, (item.record for item in new), versions)
    return [new[result].record if isinstance(result, int) else result for result in results]


def _bring_up_to_date(rows: Rows, scope: Scope, row: Row, item: Prepared) -> Row:
    """Update a stored record if its text grew or changed."""
    insist_on_reach(scope, row.record)
    newer = updated(row.record, item.record)
    return row if newer is row.record else change(rows, row, restated(rows, row.record, newer), item)
