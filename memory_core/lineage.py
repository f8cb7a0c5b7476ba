"""Which record took whose place: the history of what was held true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory_core.drafts import as_draft, check_links
from memory_core.errors import SupersededError
from memory_core.models import STATES, Draft, Link, MemoryRecord, Scope, Version
from memory_core.protocols import ListRequest, Store
from memory_core.where.value import Where

MAX_RECORDS: Final = 1_000
"""Longest chain that is followed in either direction."""


def superseding(old: MemoryRecord, entry: Draft | str, now: datetime) -> Draft:
    """The draft that takes the place of `old`; a bare text takes over what kind of thing the old one is."""
    if isinstance(entry, str):
        entry = Draft(
            entry,
            role=old.role,
            kind=old.kind,
            tier=old.tier,
            author=old.author,
            tags=old.tags,
            importance=old.importance,
            collection=old.collection,
        )
    entry = as_draft(entry)
    links = (*check_links(entry.links), Link("supersedes", old.id))
    return replace(entry, links=links, valid_from=now if entry.valid_from is None else entry.valid_from)


def retired(old: MemoryRecord, new: MemoryRecord) -> MemoryRecord:
    """What becomes of a record when `new`, which supersedes it, is added: archived, and valid until `new` is.

    The same object if that has happened already.
    """
    start = new.occurred_at if new.valid_from is None else new.valid_from
    end = start if old.valid_to is None else min(start, old.valid_to)
    if (old.state, old.valid_to) == ("archived", end):
        return old
    return replace(old, state="archived", valid_to=end, updated_at=new.created_at, version=old.version + 1)


def retired_within(records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """A batch in which those that others of it supersede are retired already, in the same order.

    Raises:
        SupersededError: Two of them supersede the same record.
    """
    heirs: dict[str, MemoryRecord] = {}
    for record in records:
        for old in superseded_by(record):
            if old in heirs:
                raise already_superseded(old)
            heirs[old] = record
    return [retired(record, heirs[record.id]) if record.id in heirs else record for record in records]


def superseded_by(record: MemoryRecord) -> list[str]:
    """The ids of the records whose place this one takes."""
    return [link.id for link in record.links if link.relation == "supersedes"]


def already_superseded(id: str) -> SupersededError:  # noqa: A002
    """The refusal to let two records take the place of one."""
    return SupersededError(
        f"memory {id!r} has been superseded already; supersede the one that did, see history({id!r})"
    )


async def lineage(store: Store, scope: Scope, id: str) -> list[Version]:  # noqa: A002  (the record's own word)
    """The versions of a record, after those of what it superseded and before those of what superseded it."""
    start = await _first(store, scope, Where(states=STATES, ids=(id,)))
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
    told = [await store.versions(scope, record.id) for record in chain]
    versions = [version for some in told for version in some]
    ends = [version.since for version in versions[1:]]
    return _in_order(
        replace(version, until=end) if version.until is None else version
        for version, end in zip(versions, [*ends, None], strict=True)
    )


def _in_order(versions: Iterable[Version]) -> list[Version]:
    """Each begins no earlier than the one before it ended, also where the clock was set back in between."""
    found: list[Version] = []
    for version in versions:
        since = max(version.since, found[-1].until or version.since) if found else version.since
        until = None if version.until is None else max(version.until, since)
        found.append(replace(version, since=since, until=until))
    return found


async def _before(store: Store, scope: Scope, record: MemoryRecord) -> MemoryRecord | None:
    ids = superseded_by(record)
    return await _first(store, scope, Where(states=STATES, ids=ids[:1])) if ids else None


async def _after(store: Store, scope: Scope, record: MemoryRecord) -> MemoryRecord | None:
    return await _first(store, scope, Where(states=STATES, links=(Link("supersedes", record.id),)))


async def _first(store: Store, scope: Scope, where: Where) -> MemoryRecord | None:
    page = await store.list(scope, ListRequest(where=where, order="oldest", limit=1, cursor=None, touch=False))
    return page.records[0] if page.records else None
