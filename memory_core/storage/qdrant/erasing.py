"""Deleting, forgetting and erasing: a record is replaced by a marker at the same point, in one conditional update.

The marker holds no text, id or owner. It refuses a late request that would create the record again: a new point is only
inserted where no point is yet, and a change names the state that it replaces. Markers of forgotten source keys stay,
those of deleted records until no request can be on its way any more (`owners.LIFE`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

from memory_core.errors import ConflictError, MemoryCoreError, StorageError, UnfinishedWriteError, reason_for_log
from memory_core.models import DERIVING, RELATIONS, Relation
from memory_core.records.draft_to_record import insist_on_versions
from memory_core.storage.qdrant.codec import Payload, Stored, key, to_stored, token
from memory_core.storage.qdrant.deriving import give_back, made_of, made_within, outdated, pass_on, uncover
from memory_core.storage.qdrant.owners import ERASED, Access, Owner, matching, reachable, shard_of, to_owner
from memory_core.storage.qdrant.points import MAX_POINTS, OvertakenError, by
from memory_core.storage.qdrant.superseding import close_for
from memory_core.storage.qdrant.where import all_of, among, empty, owned, ranged, same
from memory_core.storage.qdrant.writing import Changes
from memory_core.storage.rules.deriving import says_nothing
from memory_core.storage.shared.merging import without_links
from memory_core.where.where import ANY_STATE

logger = logging.getLogger(__name__)

ROUNDS: Final = 100
"""The number of times that records which were on their way are looked for."""
_OTHERS: Final = "some of the memories that were seen were changed or deleted by others meanwhile"
_AGAIN: Final = "Repeating the call is safe"
_READ: Final = "Read those that are left, and delete them in the versions that they have now"


@dataclass(slots=True)
class Deletion:
    """One deletion, over all of its attempts.

    A `ConflictError` says that nothing was deleted, so it is raised only while nothing has gone. What ends a deletion
    of which a part has gone, or perhaps has, is an `UnfinishedWriteError` that names each record: `ended_by`.
    """

    forget: bool | None
    """As in `rules.deleting`."""
    versions: Mapping[str, int] | None = None
    """The versions that the records must have, together with those that earlier attempts have deleted; each is
    replaced only in the state that was compared."""
    keeps_derived: bool = False
    """True if what was made of the words of these records stays."""
    derived: set[str] = field(default_factory=set[str])
    """The points of what went with the records, because it was made of their words."""
    write: str = field(default_factory=token)
    """The token of the call, the same in all of its attempts."""
    wanted: set[str] = field(default_factory=set[str])
    """The ids of all records that an attempt was to delete."""
    gone: dict[str, Stored] = field(default_factory=dict[str, Stored])
    """The records that have been deleted, by point."""
    unsure: dict[str, Stored] = field(default_factory=dict[str, Stored])
    """The records that may have been deleted, by point: a replica that is behind hides a marker from the attempt
    that wrote it."""

    async def attempt(self, owner: Owner, going: Sequence[Stored], now: datetime) -> Collection[Stored]:
        """Close what the records supersede, replace them by markers, then remove the links to them from other records.
        Returns what all attempts have deleted, and raises as `Changes.carry_out`."""
        await self._look_back(owner)
        seen = {item.point: item.record for item in (*going, *self.named)}
        ids = {record.id for record in seen.values()}
        insist_on_versions({record.id: record.version for record in seen.values()}, self.versions)
        derived = await (self._kept_from(owner, going, now) if self.keeps_derived else made_of(owner, ids))
        self.derived |= {item.point for item in derived}
        going = [*reversed(derived), *going]  # whatever ends this, nothing is left without its source
        self.wanted |= {*ids, *(item.record.id for item in derived)}
        await close_for(owner, going)
        for some in by(MAX_POINTS, going):
            await self._mark(owner, some, now)
        if self.gone:
            await owner.access.run(owner.scope, partial(self._settle, now=now))
        return self.gone.values()

    @property
    def named(self) -> list[Stored]:
        """The deleted records that the call named."""
        return [item for point, item in self.gone.items() if point not in self.derived]

    async def _kept_from(self, owner: Owner, going: Sequence[Stored], now: datetime) -> list[Stored]:
        """The derived records that go all the same, with records whose derived records stay."""
        found = [*await outdated(owner, going), *await pass_on(owner, going, now)]
        return list({item.point: item for item in found}.values())

    async def _settle(self, owner: Owner, now: datetime) -> None:
        gone, ids = list(self.gone.values()), {item.record.id for item in self.gone.values()}
        derived = [item for item in gone if item.point in self.derived]
        await give_back(owner, derived if self.keeps_derived else gone, {item.record.id for item in derived}, now)
        if self.keeps_derived:
            for item in gone:
                await uncover(owner, item.record, replace(item.record, left=True))
        await _unlink(owner, ids, now, keep=DERIVING if self.keeps_derived else ())

    async def _look_back(self, owner: Owner) -> None:
        found = await owner.points.read(list(self.unsure), fields=["_write", "_writes"]) if self.unsure else []
        for point in found:
            if self.write in point.payload.get("_writes", ()):
                self.gone[point.id] = self.unsure.pop(point.id)
            elif point.payload.get("_write") != self.unsure[point.id].write:  # another writer was first
                del self.unsure[point.id]

    async def _mark(self, owner: Owner, some: Sequence[Stored], now: datetime) -> None:
        self.unsure |= {item.point: item for item in some if item.point not in self.gone}
        try:
            keeps, frees = self.keeps_derived, None if self.forget is None else False
            rest = [item for item in some if item.point in self.derived]
            await _mark(Changes(owner, self.write), rest, now, forget=frees, keeps_derived=keeps)
            named = [item for item in some if item.point not in self.derived]
            await _mark(Changes(owner, self.write), named, now, forget=self.forget, keeps_derived=keeps)
        except UnfinishedWriteError as failure:
            self._note(some, stored=failure.stored, unknown=failure.unknown)
            raise
        except StorageError:
            self._note(some, stored=(), unknown=())
            raise
        self._note(some, stored=[item.record.id for item in some], unknown=())

    def _note(self, some: Sequence[Stored], *, stored: Collection[str], unknown: Collection[str]) -> None:
        self.gone |= {item.point: item for item in some if item.record.id in stored}
        for item in some:
            if item.record.id not in unknown:
                self.unsure.pop(item.point, None)

    def ended_by(self, failure: ConflictError | StorageError) -> MemoryCoreError:
        """The error of a deletion that this failure ends: itself if nothing has gone, else what names each record."""
        reason = failure.__cause__ if isinstance(failure, UnfinishedWriteError) else failure
        gone, unsure = (tuple(item.record.id for item in some.values()) for some in (self.gone, self.unsure))
        if not gone and not unsure:
            return reason if isinstance(reason, MemoryCoreError) else failure
        wanted = self.wanted | set(self.versions or ())
        left = tuple(sorted(wanted.difference(gone, unsure)))
        why = _OTHERS if isinstance(failure, ConflictError) else str(reason or failure)
        return UnfinishedWriteError(
            f"{why}; {len(gone)} of {len(wanted)} memories are deleted, {len(left)} were not deleted by this call, and "
            f"of {len(unsure)} it is unknown. {_AGAIN if self.versions is None else _READ}",
            stored=gone,
            missing=left,
            unknown=unsure,
        )


async def attempt_late(owner: Owner, deletion: Deletion, now: datetime) -> Collection[Stored]:
    """Delete what was made of the words of the scope, also of records that have expired before."""
    late = await made_within(owner)
    deletion.derived |= {item.point for item in late}
    return await deletion.attempt(owner, late, now)


async def discard(owner: Owner, gone: Sequence[Stored], removed: Collection[str], now: datetime) -> None:
    """Replace records by markers that an import removes, by id, or has under another source key. What was made of
    their words stays, with its links to them."""
    await close_for(owner, gone)
    await _mark(Changes(owner), gone, now, forget=None)
    if removed:
        await _unlink(owner, removed, now, keep=DERIVING)


async def withdraw(owner: Owner, new: Sequence[Stored], now: datetime) -> None:
    """Replace records by markers that a write has stored and gives up; what they would have superseded stays."""
    await _mark(Changes(owner), new, now, forget=None, keeps_derived=False)


async def _mark(
    changes: Changes, going: Sequence[Stored], now: datetime, *, forget: bool | None, keeps_derived: bool = True
) -> None:
    for item in going:
        changes.mark(item, now, forget=forget, keeps_derived=keeps_derived)
    await changes.carry_out()


async def _unlink(owner: Owner, gone: Collection[str], now: datetime, keep: Collection[Relation]) -> None:
    """Remove the links to records that are gone, whatever else changes in the records that have them, and the notes
    that say nothing without them."""
    keys = [key("links", f"{relation}:{one}") for one in sorted(gone) for relation in RELATIONS]
    found = await owner.points.having("_keys", keys, owned(owner.key))
    changes = Changes(owner)
    for known in map(to_stored, {record.id: record for record in found}.values()):
        record = without_links(known.record, gone, keep)
        if says_nothing(known.record, record):
            changes.mark(known, now, forget=None, keeps_derived=True)
        elif record is not known.record:
            changes.overwrite(known, record)
    await changes.carry_out()


async def postpone(owner: Owner, expiries: Mapping[str, datetime | None], now: datetime) -> None:
    """See `Store.postpone`."""
    changes = Changes(owner)
    for item in await matching(owner, replace(ANY_STATE, ids=tuple(expiries)), now):
        record, expires = item.record, expiries[item.record.id]
        if expires != record.expires_at:
            changes.overwrite(item, replace(record, expires_at=expires, version=record.version + 1))
    await changes.carry_out()


async def sweep_owner(owner: Owner, now: datetime) -> int:
    """Delete the expired records in reach; returns how many."""
    reach = await reachable([owner], ANY_STATE, None)
    expired = await owner.records(*reach, ranged("expires_at", lte=now))
    await Deletion(forget=None, keeps_derived=True).attempt(owner, expired, now)
    return len(expired)


async def erase(owner: Owner, now: datetime) -> list[Stored]:
    """Remove everything of an owner; returns what there was. The epoch is raised first, so nothing is read any more
    whatever happens next, and what is on its way never is."""
    gone: list[Stored] = []
    for ended in await owner.access.raise_epoch(owner, now):
        gone += await _empty_epoch(owner.access, ended, now)
    return gone


async def _empty_epoch(access: Access, ended: str, now: datetime) -> list[Stored]:
    """Replace all records of a past epoch (a value of `_owner`) by markers; returns them."""
    scope, epoch = to_owner(ended)
    owner = Owner(access, scope, epoch, access.points.for_owner(shard_of(scope), {}))
    gone: dict[str, Stored] = {}
    for _ in range(ROUNDS):
        if not (found := await owner.records()):
            break
        gone |= {item.point: item for item in found}
        with suppress(OvertakenError):  # by a record of the next epoch, or by another process that erases
            await _mark(Changes(owner), found, now, forget=True)
    return list(gone.values())


async def sweep(access: Access, now: datetime) -> None:
    """Background work for all owners: expired records, old markers, and what arrived late for erased owners; each is
    found through an index."""
    points = access.points
    for record in await points.all(same("_keys", ERASED), fields=["_ended", "_write", "expires_at"]):
        await _empty_late(access, record.id, record.payload, now)
    old = ranged("expires_at", lte=now)
    if await points.all(old, fields=False):
        of_all = await points.everywhere()
        await points.write(of_all.delete(old, empty("_owner"), all_of(but_not=[same("_keys", ERASED)])))
    expired = [record.payload for record in await points.all(old, fields=["_owner"])]
    for scope in sorted({to_owner(one["_owner"])[0] for one in expired if "_owner" in one}, key=shard_of):
        try:
            async with access.lock(scope):
                await access.run(scope, partial(sweep_owner, now=now))
        except StorageError as error:  # of this owner; the others do not wait for it
            logger.warning("expired records of an owner stay for now: %s", reason_for_log(error))


async def _empty_late(access: Access, point: str, payload: Payload, now: datetime) -> None:
    for ended in payload["_ended"]:
        await _empty_epoch(access, ended, now)
    if datetime.fromisoformat(payload["expires_at"]) <= now:
        done = {"_ended": None, "_keys": None, "expires_at": None}
        shared = access.points.shared
        await shared.write(shared.set_fields(done, among([point]), same("_write", payload["_write"])))
