"""How a write is carried out: one conditional request for each point, and a look whether it held.

A server applies each point on its own, and its reply does not say whether a condition held. So every state of a point
has the token of the write that made it, a change names the token of the state that it replaces, and the tokens are read
back. A batch is not a transaction: a failure in the middle raises `UnfinishedWriteError`, which names what is stored.
Planning starts again if another writer was faster; it finds what this write has stored by its token.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from memory_core.chunking import Chunker
from memory_core.errors import StorageError, StoreUnavailableError, UnfinishedWriteError
from memory_core.models import Fingerprint, Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Arrivals, Names, Payload, Point
from memory_core.storage.qdrant.collection import NAMED, PAGE, Points, by, portions
from memory_core.storage.qdrant.meta import Meta, vector_name
from memory_core.storage.qdrant.owners import Owner, Owners
from memory_core.storage.qdrant.retry import UnansweredError
from memory_core.storage.qdrant.where import all_of, among, any_of, same

T = TypeVar("T")

MAX_CONFLICTS: Final = 10
"""How often a write is planned again because another process was faster."""


class OvertakenError(Exception):
    """Another process changed the state this write was planned on."""

    def __init__(self, stored: Collection[str]) -> None:
        super().__init__()
        self.stored = stored
        """The points that were written nevertheless."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A point that is replaced, if it is still in the state that was read."""

    point: Point
    was: str
    """The token of that state."""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Payload fields to set, if the point is still in the state that was read; its vectors stay."""

    point: str
    payload: Payload
    was: str


@dataclass(slots=True)
class Changes:
    """The points that one write changes."""

    write: str
    """The token of the new states."""
    inserts: list[Point] = field(default_factory=list[Point])
    rewrites: list[Rewrite] = field(default_factory=list[Rewrite])
    overwrites: list[Overwrite] = field(default_factory=list[Overwrite])
    named: dict[str, str] = field(default_factory=dict[str, str])
    """The id of the record at each point, for errors."""

    @property
    def points(self) -> list[str]:
        """Everything that changes, in the order of the requests."""
        inserts, rewrites = (point.id for point in self.inserts), (item.point.id for item in self.rewrites)
        return [*inserts, *rewrites, *(item.point for item in self.overwrites)]


class Locks:
    """One lock for each owner being written to, so that writes of this process do not conflict with each other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str | None], asyncio.Lock] = WeakValueDictionary()

    def of(self, scope: Scope) -> asyncio.Lock:
        """The owner's lock; it exists while it is locked or awaited."""
        return self._locks.setdefault((scope.app, scope.user), asyncio.Lock())


@dataclass(slots=True)
class Access:
    """What the operations of a store share."""

    records: Points
    meta: Meta
    names: Names
    owners: Owners
    fingerprint: Fingerprint | None
    """The embedder of the vectors that this store writes and compares; `None` if there are none."""
    chunker: Chunker
    arrivals: Arrivals = field(default_factory=Arrivals)
    locks: Locks = field(default_factory=Locks)

    @property
    def vector(self) -> str | None:
        """The name of these vectors."""
        return None if self.fingerprint is None else vector_name(self.fingerprint)


async def carry_out(points: Points, changes: Changes) -> None:
    """Apply all of the changes.

    Raises:
        OvertakenError: Another process was faster with some of them; plan again.
        UnfinishedWriteError: The server failed after some of them, or perhaps did.
        StorageError: The server refused all of them.
    """
    if not changes.points:
        return
    sent: list[str] = []
    failure: StorageError | None = None
    try:
        await _send(points, changes, sent)
    except StorageError as error:
        failure = error
    try:
        stored = await _stored(points, changes)
    except StorageError as error:
        raise _unfinished(failure or error, changes, set(), sent, is_unread=True) from None
    if len(stored) == len(set(changes.points)):
        return
    if failure is None:
        raise OvertakenError(stored)
    raise _unfinished(failure, changes, stored, sent, is_unread=False)


async def _send(points: Points, changes: Changes, sent: list[str]) -> None:
    for some in portions(changes.inserts):
        sent += [point.id for point in some]
        await points.upsert(some, models.UpdateMode.INSERT_ONLY)
    was = {item.point.id: item.was for item in changes.rewrites}
    for some in portions(item.point for item in changes.rewrites):
        sent += [point.id for point in some]
        states = {was[point.id] for point in some}
        await points.upsert(some, models.UpdateMode.UPDATE_ONLY, all_of(any_of("_write", states)))
    for items in by(PAGE, changes.overwrites):
        sent += [item.point for item in items]
        await points.write(
            *(points.set_fields(item.payload, all_of(among([item.point]), same("_write", item.was))) for item in items)
        )


async def _stored(points: Points, changes: Changes) -> set[str]:
    found: set[str] = set()
    for some in by(NAMED, changes.points):
        records = await points.read(some, fields=["_writes"])
        found |= {str(record.id) for record in records if changes.write in (record.payload or {}).get("_writes", ())}
    return found


def _unfinished(
    failure: StorageError, changes: Changes, stored: set[str], sent: Sequence[str], *, is_unread: bool
) -> StorageError:
    """The error for a write of which not everything is stored."""
    left = [point for point in dict.fromkeys(changes.points) if point not in stored]
    is_answered = not (is_unread or isinstance(failure, UnansweredError))
    unknown = [] if is_answered else [point for point in left if point in set(sent)]
    if not stored and not unknown:
        return failure
    said = [len(stored), len(left) - len(unknown), len(unknown)]
    error = UnfinishedWriteError(
        f"{failure}; {said[0]} of {sum(said)} records are written, {said[1]} are not, and of {said[2]} it is unknown, "
        "because the reply was lost; repeating the call with the same ids or source keys is safe",
        stored=_named(changes.named, [point for point in changes.points if point in stored]),
        missing=_named(changes.named, [point for point in left if point not in set(unknown)]),
        unknown=_named(changes.named, unknown),
    )
    error.__cause__ = failure
    return error


def _named(names: Mapping[str, str], points: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names.get(point, point) for point in points))


async def until_undisturbed(access: Access, scope: Scope, attempt: Callable[[Owner], Awaitable[T]]) -> T:
    """The result of a write, which is planned again whenever another process interferes.

    Raises:
        StoreUnavailableError: Every attempt was disturbed.
    """
    for conflict in range(MAX_CONFLICTS):
        try:
            return await access.owners.run(scope, attempt)
        except OvertakenError:
            await asyncio.sleep(random.uniform(0, 0.02 * 2**conflict))  # noqa: S311  (spreads retries out)
    raise StoreUnavailableError(f"{MAX_CONFLICTS} other writers changed the same records first; try again")
