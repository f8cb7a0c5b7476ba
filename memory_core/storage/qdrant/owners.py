"""Owners and their epochs.

`erase` cannot delete a record whose insertion is still on its way. So every record belongs to an epoch of its owner,
which is part of `_owner` and thereby of every filter. `erase` raises the epoch, which one point without text holds;
what arrives later belongs to the old epoch, is never read, and is deleted by the background work. Each request checks
the epoch along with what it reads (`collection.Guard`), so a process that did not notice the erasure begins again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from memory_core.errors import StoreUnavailableError
from memory_core.models import Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Names, Payload, Point, stamp, token
from memory_core.storage.qdrant.collection import EpochError, Guard, Points
from memory_core.storage.qdrant.where import all_of, any_of

T = TypeVar("T")

LIFE: Final = timedelta(minutes=15)
"""The longest life of a request: longer than any client, proxy or queue of a server holds one. Until then a deleted
record leaves a marker, and the background work deletes what arrives for an erased owner."""
ERASED: Final = "erased"
"""The key of the points of owners that were erased lately."""
CACHED: Final = 10_000
"""How many owners' epochs and authors are cached."""
AUTHORS_SECONDS: Final = 60.0
"""How long the authors of an owner, of whom other processes may add some, are cached."""
_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner in one epoch."""

    scope: Scope
    """App and user."""
    epoch: int
    points: Points
    """The records' collection, guarded by the epoch."""

    @property
    def key(self) -> str:
        """The value of `_owner`; no two owners or epochs share one."""
        return owner_key(self.scope, self.epoch)


def owner_key(scope: Scope, epoch: int) -> str:
    """See `Owner.key`."""
    return f"{epoch}:{shard_of(scope)}"


def shard_of(scope: Scope) -> str:
    """The shard key of an owner that has a dedicated shard."""
    return f"{len(scope.app)}:{scope.app}{scope.user}"


def to_owner(key: str) -> tuple[Scope, int]:
    """The inverse of `owner_key`."""
    epoch, _, named = key.partition(":")
    length, _, names = named.partition(":")
    return Scope(names[: int(length)], names[int(length) :]), int(epoch)


class Owners:
    """The epochs of owners, cached. Lives on the core loop."""

    def __init__(self, records: Points, names: Names) -> None:
        self.records = records
        self._names = names
        self._epochs: OrderedDict[Scope, int] = OrderedDict()
        self.authors: OrderedDict[Scope, tuple[float, tuple[str, ...]]] = OrderedDict()
        """The authors of an owner's records, and until when they are valid; see `searching.participants`."""

    async def run(self, scope: Scope, work: Callable[[Owner], Awaitable[T]]) -> T:
        """Work in the owner's epoch; again if the owner is erased meanwhile.

        Raises:
            StoreUnavailableError: The owner was erased again and again.
        """
        owner = Scope(scope.app, scope.user)
        for _ in range(_ATTEMPTS):
            try:
                return await work(await self._known(owner))
            except EpochError as error:
                self._note(owner, error.epoch)
        raise StoreUnavailableError("this owner is being erased by several processes; try again")

    async def raise_epoch(self, owner: Owner, now: datetime) -> list[str]:
        """End the owner's epoch: what belongs to it is never read again.

        Returns:
            The keys of the epochs that ended lately, the latest last.
        """
        point = self._names.owner(owner.scope)
        known = await self._entry(point)
        if known.get("_epoch", 0) == owner.epoch:
            ended = [*(known.get("_ended") or ()), owner.key]
            payload = {"_marker": "owner", "_epoch": owner.epoch + 1, "_write": token(), "_ended": ended}
            made = Point(point, {**payload, "_keys": [ERASED], "expires_at": stamp(now + LIFE)})
            if known:
                was = all_of(any_of("_write", [known["_write"]]))
                await self.records.shared.upsert([made], models.UpdateMode.UPDATE_ONLY, was)
            else:
                await self.records.shared.upsert([made], models.UpdateMode.INSERT_ONLY)
        after = await self._entry(point)
        self._note(owner.scope, int(after["_epoch"]))
        self.authors.pop(owner.scope, None)
        return [*(after.get("_ended") or ())]

    async def _entry(self, point: str) -> Payload:
        found = await self.records.read([point])
        return (found[0].payload or {}) if found else {}

    async def _known(self, owner: Scope) -> Owner:
        if owner not in self._epochs:
            self._note(owner, int((await self._entry(self._names.owner(owner))).get("_epoch", 0)))
        epoch = self._epochs[owner]
        guard = Guard(self._names.owner(owner), epoch)
        return Owner(owner, epoch, self.records.for_owner(shard_of(owner), guard))

    def _note(self, owner: Scope, epoch: int) -> None:
        self._epochs[owner] = epoch
        self._epochs.move_to_end(owner)
        if len(self._epochs) > CACHED:
            self._epochs.popitem(last=False)
