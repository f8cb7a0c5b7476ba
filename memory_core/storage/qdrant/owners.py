"""Owners, their epochs, and what the operations of a store share.

`erase` cannot delete a record whose insertion is still on its way. So every record belongs to an epoch of its owner,
which is part of `_owner` and thereby of every filter. `erase` raises the epoch, which one point without text holds;
what arrives later belongs to the old epoch, is never read, and is deleted by the background work. Each request checks
the epoch along with what it reads (`Points.guards`), so a process that did not notice the erasure begins again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from memory_core.chunking import Chunker
from memory_core.errors import StoreUnavailableError
from memory_core.models import Fingerprint, Scope
from memory_core.storage.qdrant import codec
from memory_core.storage.qdrant.codec import Point, Stored
from memory_core.storage.qdrant.meta import Meta, vector_name
from memory_core.storage.qdrant.points import EpochError, OvertakenError, Points
from memory_core.storage.qdrant.where import Clause, all_of, among, conditions, owned, undecided
from memory_core.where.meaning import has_keyword, matcher
from memory_core.where.where import Where

T = TypeVar("T")

LIFE: Final = timedelta(minutes=15)
"""The longest life of a request: longer than any client, proxy or queue of a server holds one. Until then a deleted
record leaves a marker, and the background work deletes what arrives for an erased owner."""
ERASED: Final = "erased"
"""The key of the points of owners that were erased lately."""
CACHED: Final = 10_000
"""The number of owners whose epochs and authors are cached; with one more, all of them are read again."""
_ATTEMPTS: Final = 20
_LONGEST_PAUSE_SECONDS: Final = 2.0
"""Between two attempts; a random part of it, so that writers do not meet again."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner in one epoch."""

    access: Access
    scope: Scope
    """App and user, and what else bounds the caller."""
    epoch: int
    points: Points
    """The records' collection, guarded by the epochs of all owners that are read together."""

    @property
    def key(self) -> str:
        """The value of `_owner`; no two owners or epochs share one."""
        return f"{self.epoch}:{shard_of(self.scope)}"

    async def records(self, *clauses: Clause) -> list[Stored]:
        """The owner's records that satisfy the conditions."""
        found = await self.points.all(owned(self.key), *clauses)
        return [codec.to_stored(record) for record in found]


def shard_of(scope: Scope) -> str:
    """The shard key of an owner that has a dedicated shard."""
    return f"{len(scope.app)}:{scope.app}{scope.user}"


def to_owner(key: str) -> tuple[Scope, int]:
    """The inverse of `Owner.key`."""
    epoch, length, rest = key.split(":", 2)
    return Scope(rest[: int(length)], rest[int(length) :]), int(epoch)


@dataclass(slots=True)
class Access:
    """The state that the operations of a store share. It lives on the core loop."""

    points: Points
    """The records' collection, for requests about no owner."""
    meta: Meta
    names: codec.Names
    fingerprint: Fingerprint | None
    """The embedder of the vectors that this store writes and compares; `None` without vectors."""
    chunker: Chunker
    arrived: int = 0
    """The arrival of the last record; see `codec.Row.seq`."""
    authors: dict[str, tuple[float, Sequence[str]]] = field(default_factory=dict[str, tuple[float, Sequence[str]]])
    """By the keys of owners: until when, and the authors of their records; see `searching.participants`."""
    _epochs: dict[str, int] = field(default_factory=dict[str, int])
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary[str, asyncio.Lock])
    _writes: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    @property
    def vector(self) -> str | None:
        """The name of the vectors of `fingerprint`."""
        return None if self.fingerprint is None else vector_name(self.fingerprint)

    def arrivals(self, count: int) -> range:
        """As many numbers, which ascend in the order in which records arrive."""
        first = max(self.arrived + 1, time.time_ns() // 1_000)
        self.arrived = first + count - 1
        return range(first, first + count)

    def lock(self, scope: Scope) -> asyncio.Lock:
        """The owner's lock, so that writes of this process do not conflict with each other."""
        return self._locks.setdefault(shard_of(scope), asyncio.Lock())

    async def finish(self, write: Coroutine[Any, Any, T]) -> T:
        """Run a write to its end, even if the caller is cancelled."""
        task = asyncio.create_task(write, name="memory-core qdrant write")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def finished(self) -> None:
        """Wait for the writes that are under way now."""
        if self._writes:
            await asyncio.wait(self._writes)

    async def run(self, scope: Scope, work: Callable[[Owner], Awaitable[T]]) -> T:
        """Work in the owner's epoch; see `run_together`."""
        return await self.run_together((scope,), lambda owners: work(owners[0]))

    async def run_together(self, scopes: Sequence[Scope], work: Callable[[Sequence[Owner]], Awaitable[T]]) -> T:
        """Work for owners; again whenever one of them is erased meanwhile, or another process changes a record first.
        Raises `StoreUnavailableError` if every attempt was disturbed."""
        for attempt in range(_ATTEMPTS):
            try:
                return await work(await self._owners(scopes))
            except EpochError:
                for scope in scopes:
                    self._epochs.pop(self.names.owner(scope), None)
            except OvertakenError:
                await asyncio.sleep(random.uniform(0, min(0.02 * 2**attempt, _LONGEST_PAUSE_SECONDS)))  # noqa: S311
        raise StoreUnavailableError(f"other writers changed or erased the same records {_ATTEMPTS} times; try again")

    async def raise_epoch(self, owner: Owner, now: datetime) -> list[str]:
        """End the owner's epoch, of which nothing is read again; returns the keys of those that ended lately."""
        point = self.names.owner(owner.scope)
        known = await self._entry(point)
        if known.get("_epoch", 0) == owner.epoch:
            ended = [*(known.get("_ended") or ()), owner.key]
            payload = {"_marker": "owner", "_epoch": owner.epoch + 1, "_write": codec.token(), "_ended": ended}
            made = Point(point, {**payload, "_keys": [ERASED], "expires_at": codec.stamp(now + LIFE)})
            await self.points.shared.upsert([made], {point: known["_write"]} if known else None)
        after = await self._entry(point)
        self._epochs.pop(point, None)
        return [*(after.get("_ended") or ())]

    async def _entry(self, point: str) -> codec.Payload:
        found = await self.points.read([point])
        return found[0].payload if found else {}

    async def _owners(self, scopes: Sequence[Scope]) -> list[Owner]:
        places = [self.names.owner(scope) for scope in scopes]
        guards = {point: await self._epoch(point) for point in places}
        points = self.points.for_owner(shard_of(scopes[0]), guards)
        points = points if len(scopes) == 1 else replace(points, shard=None)
        return [Owner(self, scope, guards[point], points) for scope, point in zip(scopes, places, strict=True)]

    async def _epoch(self, point: str) -> int:
        if point not in self._epochs:
            epoch = int((await self._entry(point)).get("_epoch", 0))
            if len(self._epochs) >= CACHED:
                self._epochs.clear()
            self._epochs[point] = epoch
        return self._epochs[point]


async def reachable(owners: Sequence[Owner], where: Where, now: datetime | None) -> list[Clause]:
    """The conditions for a record in reach, in a form that a server can answer; see `where.conditions`. Keywords and
    what `undecided` returns are evaluated here, on all records that satisfy the rest; the result names the points."""
    found = conditions([(owner.key, owner.scope) for owner in owners], where, now)
    tests = [matcher(condition) for condition in undecided(where)]
    if not tests and where.keywords is None:
        return found
    matching: list[str] = []
    async for page in owners[0].points.pages(all_of(*found), fields=[*codec.NAMES]):
        for point in page:
            record = codec.to_record(point.payload)
            if has_keyword(record.text, where.keywords) and all(test(record) for test in tests):
                matching.append(point.id)
    return [*found, among(matching)]


async def matching(owner: Owner, where: Where, now: datetime | None) -> list[Stored]:
    """All records in reach that satisfy the conditions, without those that have expired by `now`."""
    return await owner.records(*await reachable([owner], where, now))
