"""Adding, putting and changing records: survey what is stored, embed, plan, write."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory_core.errors import ConflictError
from memory_core.models import MemoryRecord
from memory_core.records.kinds import is_message
from memory_core.storage.qdrant import superseding
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import FORGOTTEN, Stored, key, to_row, to_stored
from memory_core.storage.qdrant.deriving import follow, insist_on_sources, restated, settle, uncover
from memory_core.storage.qdrant.erasing import Deletion, withdraw
from memory_core.storage.qdrant.owners import Owner, matching
from memory_core.storage.qdrant.points import OvertakenError
from memory_core.storage.qdrant.where import keyed, ordered, owned, ranged
from memory_core.storage.qdrant.writing import Changes
from memory_core.storage.shared.merging import (
    id_is_taken,
    insist_on_reach,
    is_searched_differently,
    merged,
    replacing,
    updated,
)
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.stored_forms import micros, moment
from memory_core.where.where import ANY_STATE

_MADE: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""The form of the ids that `new_id` makes."""
NEIGHBORS: Final = 2
"""The number of turns before it that a turn knows."""

Before = Mapping[str, Sequence[int]]
"""The arrivals of the turns before each new one, by the id of the record."""


@dataclass(frozen=True, slots=True)
class _Survey:
    """The records that are stored where those to be added belong."""

    by_id: Mapping[str, Stored]
    by_point: Mapping[str, Stored]
    forgotten: frozenset[str]
    vacant: Mapping[str, str]
    """The state of points that are free although they exist: of markers, expired records and erased ones."""


async def unchanged(owner: Owner, items: Sequence[Prepared], *, is_put: bool) -> set[str]:
    """The ids of the items that need no vectors: their text is stored under their source key or, unless it is put,
    their source key is forgotten."""
    points = {item.record.id: owner.access.names.point_of(item.record) for item in items if item.record.source_key}
    found = await owner.points.read(sorted({*points.values()}), fields=["text", "_marker"]) if points else []
    there = {point.id: point.payload for point in found}

    def is_kept(item: Prepared) -> bool:
        payload = there.get(points.get(item.record.id, ""), {})
        is_forgotten = payload.get("_marker") == "forgotten" and not is_put
        return is_forgotten or payload.get("text") == item.record.text

    return {item.record.id for item in items if is_kept(item)}


async def write(
    owner: Owner,
    items: Sequence[Prepared],
    token: str,
    now: datetime,
    *,
    is_put: bool,
    remove: Collection[str],
    versions: Mapping[str, int] | None = None,
) -> list[MemoryRecord | None]:
    """Write the items, given the current state of the store, and then delete the records of the keys in `remove`. What
    has `token` was stored by an earlier attempt; with `is_put` a record replaces the stored one of its source key.

    Raises:
        DuplicateIdError: An id is taken, or a source key belongs to a record out of reach; nothing is stored.
        SupersededError, OvertakenError, UnfinishedWriteError, StorageError: See `superseding.claim` and `carry_out`.
    """
    seen = await _survey(owner, items, now)
    plan, results = _plan(owner, items, seen, token, is_put=is_put)
    changed = await _as_sources_are(owner, plan, seen)
    plan |= {point: plan[point].again(record) for point, record in changed.items() if record != plan[point].record}
    by_id = {record.id: record for record in changed.values()}
    results = [by_id.get(record.id, record) if record is not None else None for record in results]
    records = [record for record in results if record is not None]
    made = [item.record for point, item in plan.items() if point not in seen.by_point and item.record.links]
    await insist_on_sources(owner, made)
    is_repeated = any(token in known.writes for known in seen.by_point.values())
    heirs = await superseding.claim(owner, records, now, None if is_repeated else versions)
    new = [point for point in plan if point not in seen.by_point]
    seqs = dict(zip(new, owner.access.arrivals(len(new)), strict=True))
    for point, known in seen.by_point.items():
        if point in plan and is_searched_differently(known.record, plan[point].record):
            seqs[point] = known.seq
    await _carry_out(owner, plan, seen, seqs, token)
    await _insist_on_own_ids(owner, {point: plan[point] for point in new}, now)
    await _take_back_without_sources(owner, made, now)
    if not {record.author for record in records} <= {None, *owner.access.authors.get(owner.key, (0.0, ()))[1]}:
        owner.access.authors.pop(owner.key, None)
    await superseding.close(owner, heirs)
    await settle(owner, list(changed.values()), now)
    for point, known in seen.by_point.items():
        after = plan[point].record if point in plan else known.record
        if is_repeated or (after.rev, after.left) != (known.record.rev, known.record.left):
            await follow(owner, after)
        await uncover(owner, known.record, after)
    if remove:
        gone = await matching(owner, replace(ANY_STATE, source_keys=tuple(remove)), now)
        await Deletion(forget=None).attempt(owner, gone, now)
    return results


async def _as_sources_are(owner: Owner, plan: Mapping[str, Prepared], seen: _Survey) -> dict[str, MemoryRecord]:
    """The stored records that the plan changes, by point, as their sources are."""
    changed = [(point, known.record) for point, known in seen.by_point.items() if point in plan]
    return {point: await restated(owner, before, plan[point].record) for point, before in changed}


async def _carry_out(
    owner: Owner, plan: Mapping[str, Prepared], seen: _Survey, seqs: Mapping[str, int], token: str
) -> None:
    """Change the stored records of the plan, and put the others at these places in the order of arrival."""
    before = await turns_before(owner, [(plan[point].record, seq) for point, seq in seqs.items()])
    changes = Changes(owner, token)
    for point, item in plan.items():
        if (was := seen.by_point.get(point)) is not None:
            await _change(changes, was, item, before)
            continue
        fresh = Stored(
            point=point,
            record=item.record,
            seq=seqs[point],
            before=before.get(item.record.id, ()),
            born=token,
            is_forgotten=point in seen.forgotten,
        )
        changes.put(item, fresh, seen.vacant.get(point))
    await changes.carry_out()


async def _survey(owner: Owner, items: Sequence[Prepared], now: datetime) -> _Survey:
    """Look up the points and ids of new records; expired records that have their ids elsewhere are deleted."""
    here = list(dict.fromkeys(owner.access.names.point_of(item.record) for item in items))
    ids = [key("id", item.record.id) for item in items]
    at_points, with_ids = await asyncio.gather(
        owner.points.read(here), owner.points.having("_keys", ids, owned(owner.key))
    )
    by_point: dict[str, Stored] = {}
    vacant: dict[str, str] = {}
    forgotten: set[str] = set()
    for found in at_points:
        point, payload = found.id, found.payload
        known = to_stored(found) if payload.get("_owner") == owner.key else None
        if known is not None and not known.has_expired(now):
            by_point[point] = known
            continue
        vacant[point] = payload["_write"]
        # An erased record is forgotten, also if the process that erased it died before it could mark it.
        was_erased = known is None and payload.get("source_key") is not None
        if was_erased or FORGOTTEN in (payload.get("_keys") or ()):
            forgotten.add(point)
    there = [to_stored(record) for record in with_ids]
    if expired := [known for known in there if known.has_expired(now) and known.point not in vacant]:
        await Deletion(forget=None, keeps_derived=True).attempt(owner, expired, now)
    return _Survey(
        by_id={known.record.id: known for known in there if not known.has_expired(now)},
        by_point=by_point,
        forgotten=frozenset(forgotten),
        vacant=vacant,
    )


def _plan(
    owner: Owner, items: Sequence[Prepared], seen: _Survey, token: str, *, is_put: bool
) -> tuple[dict[str, Prepared], list[MemoryRecord | None]]:
    """The points to be written, by id, and the result for the caller."""
    plan: dict[str, Prepared] = {}
    places = [owner.access.names.point_of(item.record) for item in items]
    for point, item in zip(places, items, strict=True):
        source, known, planned = item.record.source_key, seen.by_point.get(point), plan.get(point)
        if known is not None and (source is not None or known.born == token):
            insist_on_reach(owner.scope, known.record)
            if token in known.writes:
                continue
            last = planned.record if planned is not None and not is_put else known.record
            record = replacing(last, item.record) if is_put else updated(last, item.record)
            if record is not last:
                plan[point] = item.again(record)
        elif source is not None and planned is not None:
            plan[point] = item if is_put else merged(planned, item)
        elif known is not None or planned is not None:
            raise id_is_taken(item.record.id)
        elif is_put or point not in seen.forgotten:
            plan[point] = item
    named: set[str] = set()
    for new in (item.record.id for point, item in plan.items() if point not in seen.by_point):
        rival = seen.by_id.get(new)
        if new in named or (rival is not None and token not in rival.writes):
            raise id_is_taken(new)
        named.add(new)
    after = {point: known.record for point, known in seen.by_point.items()}
    after |= {point: item.record for point, item in plan.items()}
    return plan, [after.get(point) for point in places]


async def _insist_on_own_ids(owner: Owner, new: Mapping[str, Prepared], now: datetime) -> None:
    """Withdraw new records if another writer has stored one of their ids under another source key meanwhile; ids of
    `new_id` have no rivals. Both writers may withdraw, and one is the first to try again."""
    named = [item.record.id for item in new.values() if item.record.source_key and not _MADE.fullmatch(item.record.id)]
    if not named:
        return
    there = await matching(owner, replace(ANY_STATE, ids=named), None)
    shared = {item.record.id for item in there if item.point not in new}
    if shared:
        mine = [item for item in there if item.point in new and item.record.id in shared]
        await withdraw(owner, mine, now)
        raise OvertakenError


async def _take_back_without_sources(owner: Owner, made: Sequence[MemoryRecord], now: datetime) -> None:
    """Withdraw new records if a source has gone, was left or has changed while they were written."""
    try:
        await insist_on_sources(owner, made)
    except ConflictError:
        await withdraw(owner, await matching(owner, replace(ANY_STATE, ids=[one.id for one in made]), None), now)
        raise


async def update(owner: Owner, was: Stored, item: Prepared, write: str) -> None:
    """Change a stored record, as `_change` does, if what was read is still current; `write` is the call's token."""
    changes = Changes(owner, write)
    is_moved = is_searched_differently(was.record, item.record)
    await _change(changes, was, item, await turns_before(owner, [(item.record, was.seq)] if is_moved else []))
    await changes.carry_out()


async def _change(changes: Changes, was: Stored, item: Prepared, before: Before) -> None:
    """Add the change of a stored record to `item`, which has vectors unless they are pending or the text stays."""
    record, access = item.record, changes.owner.access
    if not is_searched_differently(was.record, record):
        changes.overwrite(was, record)
        return
    vector, made_by = access.vector, access.fingerprint  # a change of the embedder may come in between
    if not item.vectors and record.text == was.record.text and not was.is_pending and vector is not None:
        found = await changes.owner.points.read([was.point], fields=False, vector=vector)
        vectors = next((one.rows(vector) for one in found), ())
        item = item._replace(chunks=was.spans, vectors=vectors, made_by=made_by)
    known = replace(was, revisions=was.followed_by(record), before=before.get(record.id, was.before))
    changes.put(item, known, was.write)


async def turns_before(owner: Owner, placed: Sequence[tuple[MemoryRecord, int]]) -> Before:
    """The arrivals of the turns before these records, which are given with their own: a search fetches them as
    neighbours. They are hints: a turn that arrives later and was said earlier does not change them."""
    by_session: dict[str, list[tuple[int, int, str]]] = {}
    for record, seq in placed:
        if record.session is not None and is_message(record.kind):
            by_session.setdefault(record.session, []).append((micros(record.occurred_at), seq, record.id))
    requests: list[models.QueryRequest] = []
    for session, turns in by_session.items():
        earlier = owned(owner.key), keyed("session", session), ranged("occurred_at", lte=moment(min(turns)[0]))
        requests.append(ordered(earlier, "occurred_at", NEIGHBORS + 1, fields=["_row"], descending=True))
    before: dict[str, Sequence[int]] = {}
    for turns, found in zip(by_session.values(), await owner.points.query(requests), strict=True):
        new = {seq for _, seq, _ in turns}
        rows = [to_row(row.payload) for row in found]
        last: list[int] = []
        for _, seq, given in sorted([*((row.occurred_at, row.seq, "") for row in rows if row.seq not in new), *turns]):
            before[given] = last[::-1]
            last = [*last, seq][-NEIGHBORS:]
    return before
