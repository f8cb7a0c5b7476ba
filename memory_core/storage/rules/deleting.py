"""Delete records: whether a source key is forgotten with them, and what becomes of links to them.

What is deleted is what was agreed: whoever deletes what somebody has seen passes the versions that were seen, and
either exactly these records go, in one transaction, or none.

The caller of a deletion decides what becomes of the source keys: `forget=True` forgets them, and `False` frees them,
even if they were forgotten before. A record that expires, or that a put removes, leaves its key as it was (`None`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from memory_core.models import Scope
from memory_core.records.draft_to_record import insist_on_versions
from memory_core.storage.rules.rows import Head, Rows
from memory_core.storage.shared.merging import without_links
from memory_core.where.where import Where

BEFORE_EVERYTHING: Final = datetime.min.replace(tzinfo=UTC)
"""Given as the current time, it makes expired records visible."""


def delete(
    rows: Rows,
    scope: Scope,
    where: Where,
    now: datetime,
    *,
    forget: bool | None,
    versions: Mapping[str, int] | None = None,
) -> int:
    """Delete the records that satisfy the conditions; see `Records.delete`."""
    gone = rows.matching(scope, where, now)
    insist_on_versions({head.id: head.version for head in gone}, versions)
    return remove(rows, gone, forget=forget)


def sweep(rows: Rows, scope: Scope, now: datetime) -> int:
    """Delete expired records, so that their ids and source keys can be used again; returns how many."""
    return remove(rows, rows.expired(scope, now), forget=None)


def remove(rows: Rows, gone: Sequence[Head], *, forget: bool | None) -> int:
    """Delete these records, forget or free their source keys, and remove links to them from those that stay."""
    if not gone:
        return 0
    if forget is not None:
        rows.forget([head.source_key for head in gone if head.source_key is not None], forgotten=forget)
    rows.remove(gone)
    ids = {head.id for head in gone}
    rows.overwrite([(row, without_links(row.record, ids)) for row in rows.linking_to(ids)])
    return len(gone)
