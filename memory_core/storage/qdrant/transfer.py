"""Export and import of a collection's records; see `memory_core.storage.shared.transfer`.

A manifest reads the digests that points carry, so texts are downloaded only for records that differ.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memory_core.models import Fingerprint, Scope
from memory_core.protocols import Clock
from memory_core.storage.qdrant import codec
from memory_core.storage.qdrant.adding import turns_before
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Point, Stored
from memory_core.storage.qdrant.erasing import delete
from memory_core.storage.qdrant.owners import Access, Owner, to_owner
from memory_core.storage.qdrant.points import MAX_POINTS, by
from memory_core.storage.qdrant.where import among, owned, same
from memory_core.storage.qdrant.writing import Changes
from memory_core.storage.shared.prepared import prepare, with_these_vectors
from memory_core.storage.shared.transfer import Carried, Entry, Position, Tombstones

FIRST_OWNERS = 10_000
"""How many owners are asked for at first; more as long as there are more."""


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
            listed = ["id", "_row", "_keys", "_digest"]
            found = await owner.points.all(owned(owner.key), fields=listed)
            entries: list[Entry] = []
            for payload in (record.payload for record in found):
                row = codec.to_row(payload)
                has_vectors = bool(row.pieces) and codec.PENDING not in payload["_keys"]
                entries.append(Entry(payload["id"], row.seq, bytes.fromhex(payload["_digest"]), has_vectors))
            return sorted(entries, key=lambda entry: (entry.seq, entry.id))

        return await self.access.run(scope, read)

    async def take(self, scope: Scope, ids: Collection[str]) -> list[Carried]:
        vector = self.access.vector

        async def read(owner: Owner) -> list[Carried]:
            keys = [codec.key("id", one) for one in ids]
            found = await owner.points.having("_keys", keys, owned(owner.key), vector=vector)
            items = [replace(codec.carried(codec.to_stored(record)), vectors=record.rows(vector)) for record in found]
            return sorted(items, key=lambda item: (item.seq, item.record.id))

        return await self.access.run(scope, read)

    async def restore(self, scope: Scope, items: Sequence[Carried], *, remove: Collection[str] = ()) -> None:
        await self.write(scope, lambda owner: self._restore(owner, items, remove))

    async def follow(self, scope: Scope, items: Sequence[Carried], seqs: Collection[int]) -> None:
        """Make the records at these seqs of an owner equal to `items`: add, change and delete records."""

        async def work(owner: Owner) -> None:
            there = await owner.points.having("_seq", list(seqs), owned(owner.key), fields=["id"])
            existing = {record.payload["id"] for record in there}
            await self._restore(owner, items, existing - {item.record.id for item in items})

        await self.write(scope, work)

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

    async def positions(self) -> dict[Scope, Position]:
        """The positions of a mirror, by owner."""
        payloads = [found.payload for found in await self.access.meta.points.all(same("kind", "mirror"))]
        return {Scope(entry["app"], entry["user"]): Position(*entry["position"]) for entry in payloads}

    async def note_position(self, scope: Scope, position: Position | None) -> None:
        """Store the position of a mirror for an owner; `None` removes it."""
        points, point = self.access.meta.points, self.access.names.of(scope, "\0mirror")
        if position is None:
            await points.write(points.delete(among([point])))
            return
        payload = {"kind": "mirror", "app": scope.app, "user": scope.user, "position": [*asdict(position).values()]}
        entry = models.PointsList(points=[Point(point, payload).to_struct()])
        await points.write(models.UpsertOperation(upsert=entry))

    async def _restore(self, owner: Owner, items: Sequence[Carried], remove: Collection[str]) -> None:
        """Write records as they are. What has the same id elsewhere, under another source key, is deleted."""
        ids = {*remove, *(item.record.id for item in items)}
        keys = [codec.key("id", one) for one in sorted(ids)]
        found = await owner.points.having("_keys", keys, owned(owner.key))
        here = {self.access.names.point_of(item.record): item for item in items}
        elsewhere = [codec.to_stored(record) for record in found if record.id not in here]
        await delete(owner, elsewhere, self.clock(), forget=None)
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
