"""Export and import of a collection's records; see `memory_core.storage.shared.transfer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from memory_core.models import Fingerprint, Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import (
    STORED_FIELDS,
    TEXT,
    Point,
    Stored,
    point_of,
    read_revisions,
    stamp,
    to_point,
    to_stored,
    token,
)
from memory_core.storage.qdrant.collection import Points
from memory_core.storage.qdrant.where import all_of, owned
from memory_core.storage.qdrant.writing import Access, portions, settle
from memory_core.storage.shared.prepared import prepare
from memory_core.storage.shared.transfer import Carried, Entry, Tombstones


@dataclass(frozen=True, slots=True)
class QdrantPort:
    """`transfer.Copyable` over the collections of a store."""

    access: Access
    made_with: Fingerprint | None
    wake: Callable[[], None]
    """Signals that vectors may be pending."""

    async def owners(self) -> list[Scope]:
        found: set[Scope] = set()
        async for page in self.access.records.pages(models.Filter(), fields=["app", "user"]):
            found.update(Scope(existing["app"], existing["user"]) for record in page if (existing := record.payload))
        return sorted(found, key=lambda scope: (scope.app, scope.user or ""))

    async def manifest(self, scope: Scope) -> list[Entry]:
        entries: list[Entry] = []
        async for page in self.access.of(scope).pages(all_of(owned(scope)), fields=STORED_FIELDS):
            for record in page:
                stored = to_stored(str(record.id), record.payload)
                is_pending = stored.pending is not None or not stored.spans
                entries.append(Entry.of(_carried(stored), has_vectors=not is_pending))
        return sorted(entries, key=lambda entry: (entry.seq, entry.id))

    async def take(self, scope: Scope, ids: Collection[str]) -> list[Carried]:
        points, vectors = self.access.of(scope), self.made_with is not None
        found = await points.having("id", list(ids), owned(scope), fields=STORED_FIELDS, vectors=vectors)
        items = [_with_vectors(to_stored(str(record.id), record.payload), record.vector) for record in found]
        return sorted(items, key=lambda item: (item.seq, item.record.id))

    async def restore(self, scope: Scope, items: Sequence[Carried], *, remove: Collection[str] = ()) -> None:
        points = self.access.of(scope)
        wanted = [*remove, *(item.record.id for item in items)]
        existing = await points.having("id", wanted, owned(scope), fields=["_before"])
        before = {str(record.id): (record.payload or {}).get("_before") for record in existing}
        before = {**_in_session(items), **before}
        made = [self._point(scope, item, before) for item in items]
        gone = {str(record.id) for record in existing} - {
            point.id for point in made
        }  # removed, or under another key now
        if gone:
            await points.write(points.delete_points(sorted(gone)))
        await asyncio.gather(*(_put(points, some) for some in portions(made, lambda point: point)))
        self.wake()

    async def follow(self, scope: Scope, items: Sequence[Carried], seqs: Collection[int]) -> None:
        """Make the records at these seqs of an owner equal to `items`: add, change and delete records."""
        points = self.access.of(scope)
        there = await points.having("_seq", list(seqs), owned(scope), fields=["id", "session"])
        existing = [record.payload or {} for record in there]
        ids = {item.record.id for item in items}
        await self.restore(scope, items, remove=[one["id"] for one in existing if one["id"] not in ids])
        sessions = {item.record.session for item in items} | {one.get("session") for one in existing}
        if chosen := [session for session in sessions if session is not None]:
            await self.settle(scope, chosen)

    async def settle(self, scope: Scope, sessions: Collection[str] | None = None) -> None:
        """Set the previous point of each turn, in all sessions or in these."""
        await settle(self.access, scope, sessions)

    async def fingerprint(self) -> Fingerprint | None:
        return self.made_with

    async def tombstones(self) -> Tombstones:
        return await self.access.ledger.tombstones()

    async def adopt(self, tombstones: Tombstones) -> None:
        await self.access.ledger.adopt(tombstones)

    def _point(self, scope: Scope, item: Carried, before: Mapping[str, str | None]) -> Point:
        made = prepare(item.record, self.access.chunker)
        if self.access.has_vectors and len(item.vectors) == len(made.chunks):
            made = made._replace(vectors=item.vectors)
        write, point = token(), point_of(item.record)
        known = Stored(
            point=point,
            record=item.record,
            seq=item.seq,
            before=before.get(point),
            born=write,
            write=write,
            pending=None,
            revisions=[(rev, text, stamp(until)) for rev, text, until in item.revisions],
        )
        return to_point(scope, made, known, pending=None if made.vectors else token())


async def _put(points: Points, some: Sequence[Point]) -> None:
    await points.write(points.put([point.to_struct() for point in some]))


def _in_session(items: Sequence[Carried]) -> dict[str, str | None]:
    """The point before each item in its session, among these items; `settle` corrects the rest."""
    turns = sorted(
        (record.session, record.occurred_at, item.seq, point_of(record))
        for item in items
        if (record := item.record).session is not None
    )
    return {later[-1]: turn[-1] for turn, later in pairwise(turns) if turn[0] == later[0]}


def _carried(stored: Stored) -> Carried:
    return Carried(stored.record, stored.seq, tuple(read_revisions(stored.revisions)))


def _with_vectors(stored: Stored, vector: Any) -> Carried:
    item = _carried(stored)
    rows: Iterable[Any] = cast("dict[str, Any]", vector).get(TEXT, ()) if isinstance(vector, dict) else ()
    if stored.pending is not None:
        return item
    return replace(item, vectors=tuple(np.asarray(row, np.float16).tobytes() for row in rows))
