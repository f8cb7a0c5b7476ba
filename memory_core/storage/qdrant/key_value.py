"""The operations of a key-value store (`protocols.KeyValue`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from memory_core.models import STATES, MemoryRecord, Scope
from memory_core.storage.qdrant import adding
from memory_core.storage.qdrant.changes import Changes, Overwrite
from memory_core.storage.qdrant.codec import Stored, derived_fields, record_fields, stamp, to_stored, token
from memory_core.storage.qdrant.outline import Update, moves, outline_of_put, says_the_same
from memory_core.storage.qdrant.reach import reachable
from memory_core.storage.qdrant.where import EVERYTHING, all_of, conditions, up_to
from memory_core.storage.qdrant.writing import Access, carry_out, removal, settle
from memory_core.storage.shared.prepared import Prepared
from memory_core.where.value import Where


async def put(
    access: Access,
    scope: Scope,
    batch: Sequence[Prepared],
    embedded: Mapping[str, Prepared],
    *,
    remove: Collection[str],
    now: datetime,
) -> list[MemoryRecord]:
    """See `KeyValue.put`; `embedded` is from `adding.with_vectors`."""
    seen = await adding.undisturbed_survey(access, scope, batch, now)
    plan = outline_of_put(scope, batch, seen)
    changes, write = Changes(scope), token()
    if remove:
        where = Where(states=STATES, source_keys=tuple(remove))
        changes = await removal(access, scope, await matching(access, scope, where, now))
    await adding.add_new(access, changes, plan.new, seen, embedded, write)
    latest = {item.record.source_key: item for item in batch}
    for update in plan.updates:
        given = latest[update.record.source_key]
        made = embedded.get(given.record.id, given)
        item = (made if made.record == given.record else given)._replace(record=update.record)
        await _replace(access, changes, update, item, write)
    records = [record for record in plan.records() if record is not None]
    await adding.retire(access, changes, records, write)
    await carry_out(access, changes, write)
    moved = [update for update in plan.updates if moves(update)]
    if moved and len(moved) + len(plan.new) > 1:  # each position was computed as if the others had not moved
        records_moved = [record for update in moved for record in (update.known.record, update.record)]
        sessions = {record.session for record in records_moved if record.session is not None}
        await settle(access, scope, sessions)
    return records


async def postpone(access: Access, scope: Scope, expiries: Mapping[str, datetime | None], now: datetime) -> None:
    """See `KeyValue.postpone`."""
    changes, write = Changes(scope), token()
    for item in await matching(access, scope, Where(states=STATES, ids=tuple(expiries)), now):
        expires = expiries[item.record.id]
        if expires != item.record.expires_at:
            payload = {
                "expires_at": None if expires is None else stamp(expires),
                "version": item.record.version + 1,
                "_write": write,
                "_writes": item.written_by(write),
            }
            changes.overwrites.append(Overwrite(item.point, payload, item.write))
    await carry_out(access, changes, write)


async def sweep(access: Access, scope: Scope, now: datetime) -> int:
    """See `KeyValue.sweep`."""
    found = conditions(scope, EVERYTHING, None) or []
    records = await access.of(scope).all(all_of(*found, up_to("expires_at", now)))
    expired = [to_stored(str(record.id), record.payload) for record in records]
    await carry_out(access, await removal(access, scope, expired), token())
    return len(expired)


async def matching(access: Access, scope: Scope, where: Where, now: datetime | None) -> list[Stored]:
    """All records that satisfy the conditions, without those that have expired by `now`."""
    points = access.of(scope)
    found = await reachable(points, scope, where, now)
    records = [] if found is None else await points.all(all_of(*found))
    return [to_stored(str(record.id), record.payload) for record in records]


async def _replace(access: Access, changes: Changes, update: Update, item: Prepared, write: str) -> None:
    if says_the_same(update.known.record, update.record):
        tokens = {"_write": write, "_writes": update.known.written_by(write)}
        payload = {**record_fields(update.record), **derived_fields(item), **tokens}
        changes.overwrites.append(Overwrite(update.known.point, payload, update.known.write))
    else:
        await adding.add_update(access, changes, update, item, write)
