"""Deleting, forgetting and erasing: a record is replaced by a marker at the same point, in one conditional update.

The marker holds no text, id or owner. It refuses a late request that would create the record again: a new point is only
inserted where there is none, and a change names the state that it replaces. Markers of forgotten source keys stay,
those of deleted records until no request can be on its way any more (`owners.LIFE`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory_core.errors import StorageError, StoreUnavailableError, reason_for_log
from memory_core.models import RELATIONS, STATES, MemoryRecord, Scope
from memory_core.storage.qdrant.codec import (
    FORGOTTEN,
    STORED_FIELDS,
    Payload,
    Point,
    Stored,
    analysed,
    key,
    payload_of,
    stamp,
    to_stored,
    token,
)
from memory_core.storage.qdrant.collection import MAX_POINTS, PAGE, by
from memory_core.storage.qdrant.owners import ERASED, LIFE, Owner, shard_of, to_owner
from memory_core.storage.qdrant.reach import reachable
from memory_core.storage.qdrant.where import all_of, among, any_of, owned, same, up_to
from memory_core.storage.qdrant.writing import (
    MAX_CONFLICTS,
    Access,
    Changes,
    OvertakenError,
    Overwrite,
    Rewrite,
    carry_out,
    until_undisturbed,
)
from memory_core.where.value import Where

logger = logging.getLogger(__name__)

ROUNDS: Final = 100
"""How often `erase` looks for records that were on their way."""


async def matching(owner: Owner, scope: Scope, where: Where, now: datetime | None) -> list[Stored]:
    """All records that satisfy the conditions, without those that have expired by `now`."""
    found = await reachable(owner, scope, where, now)
    records = [] if found is None else await owner.points.all(all_of(*found), fields=STORED_FIELDS)
    return [to_stored(record.id, record.payload) for record in records]


async def of_sources(owner: Owner, scope: Scope, source_keys: Collection[str], now: datetime) -> list[Stored]:
    """The records of these source keys in scope."""
    return await matching(owner, scope, Where(states=STATES, source_keys=tuple(source_keys)), now)


async def delete(
    access: Access,
    owner: Owner,
    going: Sequence[Stored],
    *,
    forget: bool,
    now: datetime,
    gone: dict[str, Stored] | None = None,
) -> None:
    """Replace records by markers, then remove the links to them from other records.

    Args:
        gone: Collects what is deleted, by point, also if not everything could be.

    Raises:
        OvertakenError: Some were changed meanwhile; plan again.
    """
    done = {} if gone is None else gone
    for some in by(MAX_POINTS, going):
        items = {item.point: item for item in some}
        changes = Changes(token())
        for item in some:
            _mark(changes, item, forget=forget, now=now)
        try:
            await carry_out(owner.points, changes)
        except OvertakenError as error:
            done.update({point: items[point] for point in error.stored})
            raise
        done.update(items)
    if going:
        await unlink(access, owner, {item.record.id for item in going})


def _mark(changes: Changes, item: Stored, *, forget: bool, now: datetime) -> None:
    is_forgotten = forget and item.record.source_key is not None
    payload: Payload = {"_marker": "forgotten" if is_forgotten else "deleted", "_write": changes.write}
    payload.update({"_keys": [FORGOTTEN]} if is_forgotten else {"expires_at": stamp(now + LIFE)})
    changes.rewrites.append(Rewrite(Point(item.point, {**payload, "_writes": [changes.write]}), item.write))
    changes.named[item.point] = item.record.id


async def unlink(access: Access, owner: Owner, gone: Collection[str]) -> None:
    """Remove the links to records that are gone, whatever else changes in the records that have them."""
    keys = [key("links", f"{relation}:{one}") for one in sorted(gone) for relation in RELATIONS]
    for _ in range(MAX_CONFLICTS):
        found = await owner.points.having("_keys", keys, owned(owner.key), fields=STORED_FIELDS)
        changes = Changes(token())
        for known in {str(record.id): to_stored(record.id, record.payload) for record in found}.values():
            left = tuple(link for link in known.record.links if link.id not in gone)
            overwrite(access, owner, changes, known, replace(known.record, links=left))
        try:
            return await carry_out(owner.points, changes)
        except OvertakenError:
            continue
    raise StoreUnavailableError("others kept changing records that link to deleted ones; delete again")


def overwrite(access: Access, owner: Owner, changes: Changes, known: Stored, record: MemoryRecord) -> None:
    """Add a change of a record whose searched fields stay to `changes`."""
    vector = None if known.is_pending or not known.spans else access.vector
    item, after = analysed(record, known.spans, ()), replace(known, record=record, write=changes.write)
    changes.overwrites.append(Overwrite(known.point, payload_of(owner.key, item, after, vector), known.write))
    changes.named[known.point] = record.id


async def erase(access: Access, owner: Owner, now: datetime) -> list[Stored]:
    """Remove everything of an owner; returns what there was.

    The epoch is raised first, so nothing is read any more whatever happens next, and what is on its way never is.
    """
    gone: list[Stored] = []
    for ended in await access.owners.raise_epoch(owner, now):
        gone += await empty_epoch(access, ended, now)
    return gone


async def empty_epoch(access: Access, ended: str, now: datetime) -> list[Stored]:
    """Replace all records of a past epoch (a value of `_owner`) by markers; returns them."""
    points = access.records.for_owner(shard_of(to_owner(ended)[0]), None)
    gone: dict[str, Stored] = {}
    for _ in range(ROUNDS):
        found = await points.all(all_of(owned(ended)), fields=STORED_FIELDS)
        if not found:
            break
        changes = Changes(token())
        for record in found:
            item = gone[str(record.id)] = to_stored(record.id, record.payload)
            _mark(changes, item, forget=True, now=now)
        try:
            await carry_out(points, changes)
        except OvertakenError:  # by a record of the next epoch, or by another process that erases
            continue
    return list(gone.values())


async def sweep_owner(access: Access, owner: Owner, now: datetime) -> int:
    """Delete the expired records of an owner; returns how many."""
    found = await owner.points.all(all_of(owned(owner.key), up_to("expires_at", now)), fields=STORED_FIELDS)
    expired = [to_stored(record.id, record.payload) for record in found]
    await delete(access, owner, expired, forget=False, now=now)
    return len(expired)


async def sweep(access: Access, now: datetime) -> None:
    """Background work for all owners: expired records, old markers, and what arrived late for erased owners.

    Each is found through an index; nothing else is read.
    """
    for record in await access.records.all(all_of(same("_keys", ERASED)), fields=["_ended", "_write", "expires_at"]):
        await _empty_late(access, str(record.id), record.payload or {}, now)
    old: list[tuple[str, str]] = []
    owners: set[str] = set()
    async for page in access.records.pages(all_of(up_to("expires_at", now)), fields=["_marker", "_owner", "_write"]):
        payloads = [(str(record.id), record.payload or {}) for record in page]
        old += [(point, payload["_write"]) for point, payload in payloads if payload.get("_marker") == "deleted"]
        owners |= {payload["_owner"] for _, payload in payloads if "_owner" in payload}
    for some in by(PAGE, old):
        these = all_of(among([point for point, _ in some]), any_of("_write", [write for _, write in some]))
        await access.records.write(access.records.delete(these))
    for ended in sorted(owners):
        scope, _ = to_owner(ended)
        try:
            async with access.locks.of(scope):
                await until_undisturbed(access, scope, lambda owner: sweep_owner(access, owner, now))
        except StorageError as error:  # of this owner; the others do not wait for it
            logger.warning("expired records of an owner stay for now: %s", reason_for_log(error))


async def _empty_late(access: Access, point: str, payload: Payload, now: datetime) -> None:
    for ended in payload["_ended"]:
        await empty_epoch(access, ended, now)
    if datetime.fromisoformat(payload["expires_at"]) <= now:
        done = {"_ended": None, "_keys": None, "expires_at": None}
        shared = access.records.shared
        await shared.write(shared.set_fields(done, all_of(among([point]), same("_write", payload["_write"]))))
