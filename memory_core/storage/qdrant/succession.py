"""Superseding, on a store that changes one point at a time.

1. The old record is claimed: its point names the point of the record that will supersede it (`_closing`).
2. The new record is written with its link.
3. The old record is closed: archived, and valid until the new one becomes valid.

A reader that meets a claimed record takes it for closed if the record that supersedes it exists and is active. So at
every moment, and after a crash at any moment, it sees the old record or the new one. `check` reports claims that were
left behind, and `repair` closes or releases them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory_core.models import STATES, MemoryRecord, Scope
from memory_core.storage.qdrant.codec import CLOSING, STORED_FIELDS, Stored, key, stamp, to_record, to_stored, token
from memory_core.storage.qdrant.owners import LIFE, Owner, shard_of, to_owner
from memory_core.storage.qdrant.planning import Planner
from memory_core.storage.qdrant.removal import overwrite
from memory_core.storage.qdrant.where import all_of, any_of, conditions, owned, same
from memory_core.storage.qdrant.writing import Access, Changes, OvertakenError, carry_out, until_undisturbed
from memory_core.superseding import already_superseded, retired, superseded_by
from memory_core.where.value import Where


@dataclass(frozen=True, slots=True)
class Claims:
    """What one write supersedes: the new record by the id of the old one."""

    heirs: Mapping[str, MemoryRecord]


async def claim(access: Access, owner: Owner, planner: Planner, records: Sequence[MemoryRecord]) -> Claims:
    """Claim the stored records in scope that new ones supersede; those within the batch are retired already.

    Raises:
        SupersededError: Another record has superseded one of them, or is about to.
    """
    ids = {record.id for record in records}
    heirs = {old: record for record in records for old in superseded_by(record) if old not in ids}
    if not heirs:
        return Claims({})
    await _insist_on_no_rival(owner, heirs, ids)
    changes = Changes(token())
    for known in await _reached(owner, planner.scope, heirs):
        heir = access.names.point_of(heirs[known.record.id])
        if known.closing is not None and known.closing[0] == heir:
            continue
        if known.closing is not None and not _is_abandoned(known, planner.now):
            raise OvertakenError(())
        overwrite(access, owner, changes, replace(known, closing=(heir, stamp(planner.now))), known.record)
    await carry_out(owner.points, changes)
    return Claims(heirs)


async def close(access: Access, owner: Owner, planner: Planner, claims: Claims) -> None:
    """Close the claimed records, after the new ones are stored."""
    if claims.heirs:
        await _close(access, owner, await _reached(owner, planner.scope, claims.heirs), claims.heirs)


async def _close(access: Access, owner: Owner, items: Iterable[Stored], heirs: Mapping[str, MemoryRecord]) -> None:
    changes = Changes(token())
    for known in items:
        after = retired(known.record, heirs[known.record.id])
        if after is not known.record or known.closing is not None:
            overwrite(access, owner, changes, replace(known, closing=None), after)
    await carry_out(owner.points, changes)


async def resolved(owner: Owner, found: Sequence[Stored]) -> list[Stored]:
    """Records as a reader sees them: a claimed one is closed if an active record supersedes it."""
    claimed = {item.closing[0] for item in found if item.closing is not None and item.record.state == "active"}
    if not claimed:
        return list(found)
    heirs = await active_at(owner, claimed)
    seen: list[Stored] = []
    for item in found:
        heir = None if item.closing is None else heirs.get(item.closing[0])
        seen.append(item if heir is None else replace(item, record=retired(item.record, heir)))
    return seen


async def left_behind(access: Access) -> int:
    """How many claims there are whose writers have not finished."""
    return len(await access.records.all(all_of(same("_keys", CLOSING)), fields=["_owner"]))


async def repair(access: Access, now: datetime) -> int:
    """Close or release all claims that dead writers left behind; returns how many."""
    found = await access.records.all(all_of(same("_keys", CLOSING)), fields=["_owner"])
    owners = {str((record.payload or {})["_owner"]) for record in found}
    repaired = 0
    for scope in sorted({to_owner(one)[0] for one in owners}, key=shard_of):
        async with access.locks.of(scope):
            repaired += await until_undisturbed(access, scope, lambda owner: _repair(access, owner, now))
    return repaired


async def _repair(access: Access, owner: Owner, now: datetime) -> int:
    found = await owner.points.all(all_of(owned(owner.key), same("_keys", CLOSING)), fields=STORED_FIELDS)
    claimed = [to_stored(record.id, record.payload) for record in found]
    heirs = await active_at(owner, {item.closing[0] for item in claimed if item.closing is not None})
    changes = Changes(token())
    for item in claimed:
        heir = None if item.closing is None else heirs.get(item.closing[0])
        if heir is not None or _is_abandoned(item, now):
            after = item.record if heir is None else retired(item.record, heir)
            overwrite(access, owner, changes, replace(item, closing=None), after)
    await carry_out(owner.points, changes)
    return len(changes.points)


async def active_at(owner: Owner, points: Iterable[str]) -> dict[str, MemoryRecord]:
    """The active records at these points."""
    found = await owner.points.read(sorted(points), fields=(*STORED_FIELDS, "_owner"))
    payloads: dict[str, Any] = {str(record.id): record.payload or {} for record in found}
    mine = {point: payload for point, payload in payloads.items() if payload.get("_owner") == owner.key}
    records = {point: to_record(payload) for point, payload in mine.items()}
    return {point: record for point, record in records.items() if record.state == "active"}


async def _insist_on_no_rival(owner: Owner, heirs: Mapping[str, MemoryRecord], ids: set[str]) -> None:
    keys = [key("links", f"supersedes:{old}") for old in heirs]
    for rival in await owner.points.all(all_of(owned(owner.key), any_of("_keys", keys)), fields=STORED_FIELDS):
        record = to_record(rival.payload or {})
        if record.id not in ids:
            raise already_superseded(next(old for old in superseded_by(record) if old in heirs))


async def _reached(owner: Owner, scope: Scope, heirs: Mapping[str, MemoryRecord]) -> list[Stored]:
    bound = conditions(owner.key, scope, Where(states=STATES, ids=tuple(heirs)), None) or []
    return [
        to_stored(found.id, found.payload) for found in await owner.points.all(all_of(*bound), fields=STORED_FIELDS)
    ]


def _is_abandoned(known: Stored, now: datetime) -> bool:
    """Whether the writer of a claim is dead, and nothing that it sent is on its way."""
    return known.closing is not None and datetime.fromisoformat(known.closing[1]) + LIFE <= now
