"""The history of a record, through the chain of records that superseded each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from memory_core.models import Link, MemoryRecord, Scope, Version
from memory_core.protocols import Store
from memory_core.records.superseding import superseded_by
from memory_core.requests import ListRequest
from memory_core.where.where import ANY_STATE, Where

MAX_RECORDS: Final = 1_000
"""Longest chain that is followed in either direction."""


async def history(store: Store, scope: Scope, id: str) -> list[Version]:  # noqa: A002  (the record's own word)
    """The versions of a record, after those of the records it superseded and before those of its successors."""
    start = await _first(store, scope, replace(ANY_STATE, ids=(id,)))
    if start is None:
        return []
    chain = [start]
    seen = {start.id}
    while len(chain) < MAX_RECORDS and (before := await _before(store, scope, chain[0])) and before.id not in seen:
        chain.insert(0, before)
        seen.add(before.id)
    while len(chain) < 2 * MAX_RECORDS and (after := await _after(store, scope, chain[-1])) and after.id not in seen:
        chain.append(after)
        seen.add(after.id)
    found = [version for record in chain for version in await store.versions(scope, record.id)]
    ends = [version.since for version in found[1:]]
    return _in_order(
        replace(version, until=end) if version.until is None else version
        for version, end in zip(found, [*ends, None], strict=True)
    )


def _in_order(versions: Iterable[Version]) -> list[Version]:
    """The versions, each beginning no earlier than the previous one ended, even if the clock was set back."""
    found: list[Version] = []
    for version in versions:
        since = max(version.since, found[-1].until or version.since) if found else version.since
        until = None if version.until is None else max(version.until, since)
        found.append(replace(version, since=since, until=until))
    return found


async def _before(store: Store, scope: Scope, record: MemoryRecord) -> MemoryRecord | None:
    ids = superseded_by(record)
    return await _first(store, scope, replace(ANY_STATE, ids=ids[:1])) if ids else None


async def _after(store: Store, scope: Scope, record: MemoryRecord) -> MemoryRecord | None:
    return await _first(store, scope, replace(ANY_STATE, links=(Link("supersedes", record.id),)))


async def _first(store: Store, scope: Scope, where: Where) -> MemoryRecord | None:
    page = await store.list(scope, ListRequest(where=where, order="oldest", limit=1, cursor=None, touch=False))
    return page.records[0] if page.records else None
