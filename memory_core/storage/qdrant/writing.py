"""How a write is carried out: checked against the stored state, journaled if it concerns several points, and verified.

Qdrant has no transactions. They are emulated: a point has the token of the write that made its state, a request names
the tokens it expects, and a write of several points is in the ledger's journal before the first of them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from memory_core.chunking import DEFAULT_CHUNKER, Chunker
from memory_core.errors import DuplicateIdError, StoreUnavailableError, SupersededError
from memory_core.models import RELATIONS, Scope
from memory_core.storage.qdrant.changes import Changes, Deletion, Overwrite, Relinked, Unlinked
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import WORDS, Arrivals, Point, Stored, owner_key, sparse, token
from memory_core.storage.qdrant.collection import PAGE, Points
from memory_core.storage.qdrant.ledger import Ledger
from memory_core.storage.qdrant.outline import new_predecessors
from memory_core.storage.qdrant.turns import Place, around
from memory_core.storage.qdrant.where import all_of, among, any_of, empty, owned, same

T = TypeVar("T")

MAX_POINTS: Final = 128
MAX_CHARS: Final = 4_000_000
"""Maximum number of points, and of characters of text, in one upsert; with terms and vectors far below 32 MB."""
_TURN: Final = ("session", "occurred_at", "_seq", "_before")
MAX_CONFLICTS: Final = 8
"""How often a write is planned again because another process was faster."""


class ConflictError(Exception):
    """Another process changed the state this write was planned on. Only its new records under source keys remain."""

    def __init__(self, kept: Sequence[Deletion] = ()) -> None:
        super().__init__()
        self.kept = kept
        """Deletes them; they stay while the write may still succeed, because others may have read them already."""


class Locks:
    """One lock for each owner being written to, so that writes of this process do not conflict with each other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, scope: Scope) -> asyncio.Lock:
        """The owner's lock; it exists while it is locked or awaited."""
        return self._locks.setdefault(owner_key(scope), asyncio.Lock())


@dataclass(frozen=True, slots=True)
class Access:
    """The collections of a store."""

    records: Points
    ledger: Ledger
    arrivals: Arrivals
    locks: Locks
    has_vectors: bool
    """Whether the records' collection has vectors."""
    chunker: Chunker = DEFAULT_CHUNKER

    def of(self, scope: Scope) -> Points:
        """The records as seen by an owner."""
        return self.records.for_owner(owner_key(scope))


async def carry_out(access: Access, changes: Changes, write: str) -> None:
    """Apply all of the changes, even if this process dies meanwhile.

    Args:
        write: The token of the changed points.

    Raises:
        ConflictError: Another process was faster; plan again.
        StorageError: The server failed. A write of several points that is in the journal is applied later.
    """
    if not changes and not changes.tombstones:
        return
    alone = len(changes) <= 1
    journal = token()
    if not alone:
        await access.ledger.put_down(journal, changes.to_json())
    await apply(access, changes)
    disturbed = await _is_disturbed(access, changes, write)
    if disturbed:
        # Records under a source key are what the next attempt would write, and it finds them.
        await withdraw(access, changes.scope, [_undo(point, write) for point in changes.inserts if not _has_key(point)])
    if not alone:
        await access.ledger.strike(journal)
    if disturbed:
        raise ConflictError([_undo(point, write) for point in changes.inserts if _has_key(point)])


async def apply(access: Access, changes: Changes) -> None:
    """Apply the changes; idempotent."""
    points = access.of(changes.scope)
    await access.ledger.bury(changes.tombstones)
    await _delete(points, changes.deletions)
    for start in range(0, len(changes.unlinked), MAX_POINTS):
        some_unlinked = changes.unlinked[start : start + MAX_POINTS]
        await points.write(
            *(points.set_fields({"links": item.links}, all_of(among([item.point]))) for item in some_unlinked)
        )
    for some in portions(changes.inserts, lambda point: point):
        await points.write(points.insert([point.to_struct() for point in some]))
    for replaced in portions(changes.rewrites, lambda item: item.point):
        expected = all_of(any_of("_write", {item.was for item in replaced}))
        await points.write(points.rewrite([item.point.to_struct() for item in replaced], expected))
    for start in range(0, len(changes.overwrites), MAX_POINTS):
        overwritten = changes.overwrites[start : start + MAX_POINTS]
        await points.write(*(operation for item in overwritten for operation in _overwriting(points, item)))
    await relink(points, changes.relinked)


def _overwriting(points: Points, item: Overwrite) -> list[models.UpdateOperation]:
    here = among([item.point])
    operations: list[models.UpdateOperation] = [points.set_fields(item.payload, all_of(here, same("_write", item.was)))]
    if "_terms" in item.payload:
        words = models.PointVectors(id=item.point, vector={WORDS: sparse(item.payload["_terms"])})
        operations.append(points.set_vectors([words], all_of(same("_write", item.payload["_write"]))))
    return operations


async def relink(points: Points, relinked: Sequence[Relinked]) -> None:
    """Store the new predecessors of these turns."""
    for start in range(0, len(relinked), MAX_POINTS):
        some = relinked[start : start + MAX_POINTS]
        await points.write(*(points.set_fields({"_before": item.before}, all_of(among([item.point]))) for item in some))


async def settle(access: Access, scope: Scope, sessions: Collection[str] | None = None) -> None:
    """Set the previous point of each turn, in all sessions or in these."""
    points = access.of(scope)
    chosen = [] if sessions is None else [any_of("session", sessions)]
    turns = [
        (payload["session"], payload["occurred_at"], payload["_seq"], str(record.id), payload.get("_before"))
        for record in await points.all(all_of(owned(scope), *chosen, but_not=[empty("session")]), fields=_TURN)
        if (payload := record.payload)
    ]
    relinked: list[Relinked] = []
    last: tuple[str, str] | None = None
    for session, _, _, point, before in sorted(turns, key=lambda turn: turn[:4]):
        follows = last[1] if last is not None and last[0] == session else None
        if before != follows:
            relinked.append(Relinked(point, follows))
        last = session, point
    await relink(points, relinked)


async def removal(access: Access, scope: Scope, going: Collection[Stored]) -> Changes:
    """The changes that delete these records, and update the turns whose predecessor changes."""
    points = access.of(scope)
    changes = Changes(scope, deletions=[Deletion(item.point, item.born) for item in going])
    by_session: dict[str, list[Place]] = {}
    for item in going:
        if item.record.session is not None:
            by_session.setdefault(item.record.session, []).append(Place(item.record.occurred_at, item.seq, item.point))
    for session, places in by_session.items():
        stored = await around(points, scope, session, min(places), max(places))
        left = new_predecessors(stored, [place.point for place in places])
        changes.relinked += [Relinked(point, before) for point, before in left.items()]
    changes.unlinked = await _unlinked(points, scope, going)
    return changes


async def _unlinked(points: Points, scope: Scope, going: Collection[Stored]) -> list[Unlinked]:
    gone, points_gone = {item.record.id for item in going}, {item.point for item in going}
    keys = [f"{relation}:{id}" for id in sorted(gone) for relation in RELATIONS]  # noqa: A001
    found: dict[str, Unlinked] = {}
    for start in range(0, len(keys), PAGE):
        condition = all_of(owned(scope), any_of("links", keys[start : start + PAGE]))
        for record in await points.all(condition, fields=["links"]):
            links: list[str] = (record.payload or {})["links"]
            left = [link for link in links if link.partition(":")[2] not in gone]
            found[str(record.id)] = Unlinked(str(record.id), left)
    return [item for point, item in found.items() if point not in points_gone]


async def until_undisturbed(access: Access, scope: Scope, attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of a write, which is planned again whenever another process interferes.

    Raises:
        StoreUnavailableError: Every attempt was disturbed.
        DuplicateIdError, SupersededError: As `attempt` does.
    """
    kept: list[Deletion] = []
    for conflict in range(MAX_CONFLICTS):
        try:
            return await attempt()
        except ConflictError as error:
            kept += error.kept
            await asyncio.sleep(random.uniform(0, 0.02 * 2**conflict))  # noqa: S311  (spreads retries out)
        except (DuplicateIdError, SupersededError):
            await withdraw(access, scope, kept)
            raise
    await withdraw(access, scope, kept)
    raise StoreUnavailableError(f"{MAX_CONFLICTS} other writers changed the same records first; try again")


async def withdraw(access: Access, scope: Scope, insertions: Sequence[Deletion]) -> None:
    """Delete what was inserted; it was not acknowledged to any caller."""
    await _delete(access.of(scope), insertions)


async def _is_disturbed(access: Access, changes: Changes, write: str) -> bool:
    """Whether a point to be written has another state, or an id has two records."""
    points = access.of(changes.scope)
    inserted, changed = await asyncio.gather(
        points.having(
            "id", [point.payload["id"] for point in changes.inserts], owned(changes.scope), fields=["_writes"]
        ),
        points.read(
            [*(item.point.id for item in changes.rewrites), *(item.point for item in changes.overwrites)],
            fields=["_writes"],
        ),
    )
    mine = [write in (record.payload or {}).get("_writes", ()) for record in (*inserted, *changed)]
    return not all(mine) or len(mine) < len(changes.inserts) + len(changes.rewrites) + len(changes.overwrites)


def _undo(point: Point, write: str) -> Deletion:
    return Deletion(point.id, write)


def _has_key(point: Point) -> bool:
    return point.payload.get("source_key") is not None


async def _delete(points: Points, deletions: Sequence[Deletion]) -> None:
    for start in range(0, len(deletions), PAGE):
        some = deletions[start : start + PAGE]
        condition = all_of(among([item.point for item in some]), any_of("_born", {item.born for item in some}))
        await points.write(points.delete(condition))


def portions(items: Sequence[T], point_of: Callable[[T], Point]) -> Iterable[Sequence[T]]:
    """The items, split into requests of a size that servers accept."""
    some: list[T] = []
    chars = 0
    for item in items:
        size = len(point_of(item).payload["text"])
        if some and (len(some) == MAX_POINTS or chars + size > MAX_CHARS):
            yield some
            some, chars = [], 0
        some.append(item)
        chars += size
    if some:
        yield some
