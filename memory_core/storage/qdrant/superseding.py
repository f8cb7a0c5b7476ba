"""Superseding, on a store that changes one point at a time.

1. The old record is claimed: its point names the point of the record that will supersede it (`_closing`).
2. The new record is written with its link.
3. The old record is closed: archived, and valid until the new one becomes valid.

Taking that back goes the other way: the old record is reinstated, then the link of the new one is removed; if the new
one has been changed meanwhile, the old one is closed again.

A reader that meets a claimed record takes it for closed if the record that supersedes it exists, whatever has become of
that one. So at every moment, and after a crash at any moment, it sees the old record or the new one. Before a record is
deleted, what is claimed for it is closed. `check` reports claims that were left behind, and `repair` closes or releases
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from memory_core.models import MemoryRecord, State
from memory_core.records.superseding import already_superseded, insist_on_seen, reinstated, retired, superseded_by
from memory_core.storage.qdrant.codec import CLOSING, Stored, key, stamp, to_record
from memory_core.storage.qdrant.deriving import as_sources_are
from memory_core.storage.qdrant.owners import LIFE, Access, Owner, matching, shard_of, to_owner
from memory_core.storage.qdrant.points import OvertakenError
from memory_core.storage.qdrant.where import any_of, same
from memory_core.storage.qdrant.writing import Changes
from memory_core.where.where import ANY_STATE

Heirs = Mapping[str, MemoryRecord]
"""The records that supersede others, by the ids or the points of those."""


async def claim(
    owner: Owner, records: Sequence[MemoryRecord], now: datetime, versions: Mapping[str, int] | None = None
) -> Heirs:
    """Claim the stored records in reach that new ones supersede; those within the batch are retired already. Raises
    `SupersededError` if another record has superseded one of them, or is about to, and `ConflictError`
    if one does not have the version that `versions` names; nothing is claimed then."""
    ids = {record.id for record in records}
    heirs = {old: record for record in records for old in superseded_by(record) if old not in ids}
    if not heirs:
        return heirs
    for rival in await owner.records(any_of("_keys", [key("links", f"supersedes:{old}") for old in heirs])):
        if rival.record.id not in ids:
            raise already_superseded(next(old for old in superseded_by(rival.record) if old in heirs))
    changes, reached = Changes(owner), await _reached(owner, heirs)
    found = {known.record.id: known.record for known in reached}
    for old, expected in (versions or {}).items():
        insist_on_seen(old, found.get(old), expected)
    for known in reached:
        heir = owner.access.names.point_of(heirs[known.record.id])
        if known.closing is not None and known.closing[0] == heir:
            continue
        if known.closing is not None and not _is_abandoned(known, now):
            raise OvertakenError
        changes.overwrite(replace(known, closing=(heir, stamp(now))), known.record)
    await changes.carry_out()
    return heirs


async def close(owner: Owner, heirs: Heirs) -> None:
    """Close the claimed records, after the new ones are stored."""
    changes = Changes(owner)
    for known in await _reached(owner, heirs) if heirs else ():
        after = retired(known.record, heirs[known.record.id])
        if after is not known.record or known.closing is not None:
            changes.overwrite(replace(known, closing=None), after)
    await changes.carry_out()


async def reinstate(owner: Owner, before: MemoryRecord, after: MemoryRecord) -> Heirs:
    """Bring back the records in reach that this one superseded and, once it has changed, does not supersede any more;
    returns them with the record, for `close` if it does not change after all."""
    heirs = {old: before for old in superseded_by(before) if old not in superseded_by(after)}
    changes = Changes(owner)
    for known in await _reached(owner, heirs) if heirs else ():
        restored = reinstated(known.record, after.updated_at)
        if restored is not known.record or known.closing is not None:
            changes.overwrite(replace(known, closing=None), restored)
    await changes.carry_out()
    return heirs


async def resolved(
    owners: Sequence[Owner],
    found: Sequence[Stored],
    states: Collection[State],
    left: bool | None = None,  # noqa: FBT001
) -> list[Stored]:
    """Records as a reader sees them: a claimed one is closed if the record that supersedes it exists, and left out if
    closed records are not in `states`; a derived one is as its sources are (`deriving.as_sources_are`). A change of
    what this returns finishes the claim."""
    found = await as_sources_are(owners, found, left)
    heirs = await _heirs_of(owners, [item for item in found if item.record.state == "active"])
    after = {item.point: _closed(item, heirs[item.point]) for item in found if item.point in heirs}
    seen = [after.get(item.point, item) for item in found]
    return [item for item in seen if item.point not in heirs or item.record.state in states]


async def close_for(owner: Owner, heirs: Sequence[Stored]) -> None:
    """Close the records of the owner that are claimed for these, before these are deleted."""
    points = {item.point: item.record for item in heirs}
    changes = Changes(owner)
    for item in await owner.records(same("_keys", CLOSING)) if heirs else ():
        if item.closing is not None and item.closing[0] in points:
            after = _closed(item, points[item.closing[0]])
            changes.overwrite(after, after.record)
    await changes.carry_out()


def _closed(claimed: Stored, heir: MemoryRecord) -> Stored:
    return replace(claimed, record=retired(claimed.record, heir), closing=None)


async def left_behind(access: Access) -> list[str]:
    """The owners, with their epochs, of claims whose writers have not finished: one for each claim."""
    found = await access.points.all(same("_keys", CLOSING), fields=["_owner"])
    return [str(record.payload["_owner"]) for record in found]


async def repair(access: Access, now: datetime) -> int:
    """Close or release all claims that dead writers left behind; returns how many."""
    repaired = 0
    for scope in sorted({to_owner(one)[0] for one in await left_behind(access)}, key=shard_of):
        async with access.lock(scope):
            repaired += await access.run(scope, partial(_repair, now=now))
    return repaired


async def _repair(owner: Owner, now: datetime) -> int:
    claimed = await owner.records(same("_keys", CLOSING))
    heirs = await _heirs_of([owner], claimed)
    changes = Changes(owner)
    for item in claimed:
        heir = heirs.get(item.point)
        if heir is not None or _is_abandoned(item, now):
            after = replace(item, closing=None) if heir is None else _closed(item, heir)
            changes.overwrite(after, after.record)
    await changes.carry_out()
    return len(changes.changes)


async def _heirs_of(owners: Sequence[Owner], found: Sequence[Stored]) -> Heirs:
    """The records that supersede some of these or are about to, by the points of those."""
    claims = {item.point: item.closing[0] for item in found if item.closing is not None}
    there = await owners[0].points.read(sorted({*claims.values()})) if claims else []
    keys = {owner.key for owner in owners}
    records = {point.id: to_record(point.payload) for point in there if point.payload.get("_owner") in keys}
    return {one: records[heir] for one, heir in claims.items() if heir in records}


async def _reached(owner: Owner, heirs: Heirs) -> list[Stored]:
    return await matching(owner, replace(ANY_STATE, ids=tuple(heirs)), None)


def _is_abandoned(known: Stored, now: datetime) -> bool:
    """True if the writer of a claim is dead, and nothing that it sent is on its way."""
    return known.closing is not None and datetime.fromisoformat(known.closing[1]) + LIFE <= now
