"""Export and import of a collection's records; see `memory_core.storage.shared.transfer`.

A manifest downloads every record of an owner, because its digests are those of the records as the server returns them.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory_core.models import Fingerprint, Scope
from memory_core.storage.qdrant import codec
from memory_core.storage.qdrant.adding import turns_before
from memory_core.storage.qdrant.codec import Point, Stored
from memory_core.storage.qdrant.erasing import discard
from memory_core.storage.qdrant.owners import Access, Owner, to_owner
from memory_core.storage.qdrant.points import MAX_POINTS, by
from memory_core.storage.qdrant.where import all_of, among, owned, same
from memory_core.storage.qdrant.writing import Changes
from memory_core.storage.shared.prepared import prepare, with_these_vectors
from memory_core.storage.shared.transfer import Carried, Entry, Tombstones, sources_of
from memory_core.supplied import Clock

FIRST_OWNERS = 10_000
"""The number of owners that are asked for at first; it grows as long as there are more."""


@dataclass(frozen=True, slots=True)
class QdrantPort:
    """`transfer.Copyable` over the collections of a store."""

    access: Access
    clock: Clock
    write: Callable[[Scope, Callable[[Owner], Coroutine[Any, Any, None]]], Awaitable[None]]
    """Runs a write of one owner, as `QdrantStore` does."""

    async def owners(self) -> list[Scope]:
        """Every owner that has records, however many there are."""
        limit = FIRST_OWNERS
        while len(keys := await self.access.points.values("_owner", None, limit=limit)) == limit:
            limit *= 4
        return sorted({to_owner(key)[0] for key in keys}, key=lambda owner: (owner.app, owner.user or ""))

    async def manifest(self, scope: Scope) -> list[Entry]:
        async def read(owner: Owner) -> list[Entry]:
            pages = owner.points.pages(all_of(owned(owner.key)), fields=[*codec.NAMES, "_row", "_keys", "_revisions"])
            entries = [_entry(found.payload) async for page in pages for found in page]
            return sorted(entries, key=lambda entry: (entry.seq, entry.id))

        return await self.access.run(scope, read)

    async def take(self, scope: Scope, ids: Collection[str]) -> list[Carried]:
        vector = self.access.vector

        async def read(owner: Owner) -> list[Carried]:
            keys = [codec.key("id", one) for one in ids]
            found = await owner.points.having("_keys", keys, owned(owner.key), vector=vector)
            items = [replace(codec.to_carried(record.payload), vectors=record.rows(vector)) for record in found]
            return sorted(items, key=lambda item: (item.seq, item.record.id))

        return await self.access.run(scope, read)

    async def restore(self, scope: Scope, items: Sequence[Carried], *, remove: Collection[str] = ()) -> None:
        await self.write(scope, lambda owner: self._restore(owner, items, remove))

    async def fingerprint(self) -> Fingerprint | None:
        return self.access.fingerprint

    async def tombstones(self) -> Tombstones:
        found = await self.access.points.all(same("_keys", codec.FORGOTTEN), fields=False)
        return Tombstones(self.access.names.secret, frozenset(uuid.UUID(record.id).bytes for record in found))

    async def adopt(self, tombstones: Tombstones) -> None:
        access = self.access
        if tombstones.secret != access.names.secret:  # the store is empty: its points are named by the secret
            known = await access.meta.known()
            await access.meta.change(known, replace(known, secret=tombstones.secret))
            access.names = codec.Names(tombstones.secret)
        shared, write = access.points.shared, codec.token()
        payload = {"_marker": "forgotten", "_keys": [codec.FORGOTTEN], "_write": write, "_writes": [write]}
        for some in by(MAX_POINTS, [str(uuid.UUID(bytes=digest)) for digest in sorted(tombstones.digests)]):
            await shared.upsert([Point(point, payload) for point in some])  # those that exist stay as they are
            for found in await access.points.read(some, fields=["_marker", "_write", "_keys"]):
                keys = found.payload.get("_keys") or ()
                change: codec.Payload = {"_keys": [*keys, codec.FORGOTTEN]}  # a record was put over it
                if found.payload.get("_marker") == "deleted":
                    change = {**payload, "expires_at": None}
                if codec.FORGOTTEN not in keys:
                    unchanged = same("_write", found.payload["_write"])
                    await shared.write(shared.set_fields(change, among([found.id]), unchanged))

    async def _restore(self, owner: Owner, items: Sequence[Carried], remove: Collection[str]) -> None:
        """Write records as they are. What has the same id elsewhere, under another source key, goes."""
        ids = {*remove, *(item.record.id for item in items)}
        keys = [codec.key("id", one) for one in sorted(ids)]
        found = await owner.points.having("_keys", keys, owned(owner.key))
        here = {self.access.names.point_of(item.record): item for item in items}
        elsewhere = [codec.to_stored(record) for record in found if record.id not in here]
        removed = set(remove).difference(item.record.id for item in items)
        await discard(owner, elsewhere, removed, self.clock())
        there = await owner.points.read(list(here), fields=["_write", "_keys"])
        known = {record.id: record.payload for record in there}
        changes = Changes(owner)
        before = await turns_before(owner, [(item.record, item.seq) for item in items])
        for point, item in here.items():
            made = prepare(item.record, self.access.chunker)
            made = with_these_vectors(made, item.vectors, self.access.fingerprint)
            was = known.get(point, {})
            stored = Stored(
                point=point,
                record=item.record,
                seq=item.seq,
                before=before.get(item.record.id, ()),
                born=changes.write,
                is_forgotten=codec.FORGOTTEN in (was.get("_keys") or ()),
                revisions=codec.bounded(item.revisions),
            )
            changes.put(made, stored, was.get("_write"))
        await changes.carry_out()


def _entry(payload: codec.Payload) -> Entry:
    item = codec.to_carried(payload)
    has_vectors = bool(codec.to_row(payload).pieces) and codec.PENDING not in payload["_keys"]
    return Entry(item.record.id, item.seq, item.digest(), has_vectors, sources_of(item.record))
