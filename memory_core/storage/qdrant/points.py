"""Requests for the points of a collection, all idempotent.

One replica is read: it has every acknowledged write (`Layout.write_consistency`). Qdrant's `majority` and `all` fail
while any replica is down, and leave out a record that is just being written. Writes have the order `medium`: one
replica decides which of two conflicting writes comes first, and another takes over when it is down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from memory_core.storage.qdrant.client import AsyncQdrantClient, models
from memory_core.storage.qdrant.codec import FoundPoint, Payload, Point, named_id
from memory_core.storage.qdrant.connection import Connection, NotAppliedError, TooLargeError
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout, Patience, Server
from memory_core.storage.qdrant.where import Clause, all_of, among, any_of, same

T = TypeVar("T")

PAGE: Final = 256
"""Maximum number of points read by one request."""
NAMED: Final = 1_000
"""Maximum number of values named by one condition."""
MAX_POINTS: Final = 128
"""Maximum number of points of one write."""
MAX_BYTES: Final = 8_000_000
"""Estimated size of a write of several points; servers accept 32 MB by default."""

_NO_POINT: Final = named_id("no point")

Fields = list[str] | bool
"""The payload fields to fetch: some, all (`True`) or none (`False`)."""


class EpochError(Exception):
    """An owner was erased since its epoch was read; read or plan again in the new epoch."""


class OvertakenError(Exception):
    """Another process changed the state this write was planned on; plan again."""


@dataclass(frozen=True, slots=True)
class Points:
    """A collection, for requests of some owners or (without guards) of the store itself."""

    connection: Connection
    name: str
    layout: Layout
    shard: models.ShardKeySelector | models.ShardKeyWithFallback | str | None = None
    guards: Mapping[str, int] = field(default_factory=dict[str, int])
    """The epochs in which owners are read and written, by their points; checked with every `read` and `query`."""

    def for_owner(self, shard: str, guards: Mapping[str, int]) -> Points:
        """The same collection for requests about one owner, which may have a dedicated shard."""
        key = models.ShardKeyWithFallback(target=shard, fallback=SHARED_SHARD) if self.layout.tenant_shards else None
        return replace(self, shard=key, guards=guards)

    @property
    def shared(self) -> Points:
        """The same collection for points that belong to no owner."""
        return replace(self, shard=SHARED_SHARD if self.layout.tenant_shards else None, guards={})

    async def everywhere(self) -> Points:
        """The same collection for writes to points of any owner, for which a server wants the keys of all shards."""
        if not self.layout.tenant_shards:
            return self
        found = await self.connection.call(lambda client: client.list_shard_keys(self.name))
        return replace(self, shard=[one.key for one in found.shard_keys or ()])

    async def read(self, ids: Sequence[str], *, fields: Fields = True, vector: str | None = None) -> list[FoundPoint]:
        """The existing ones among the points, in no particular order, from all shards."""
        found: list[FoundPoint] = []
        wanted = fields if fields is True else [*(fields or ()), "_epoch"]
        for some in list(by(PAGE, ids)) or ([[]] if self.guards else []):
            records = await self.connection.call(
                lambda client, some=some: client.retrieve(
                    self.name,
                    ids=[*some, *self.guards],
                    with_payload=wanted,
                    with_vectors=[vector] if vector else False,
                )
            )
            read = _found(records)
            self._check(read)
            found += [point for point in read if point.id not in self.guards]
        return found

    async def pages(
        self, condition: models.Filter, *, fields: Fields = True, vector: str | None = None
    ) -> AsyncIterator[list[FoundPoint]]:
        """All points that satisfy the condition, by id, a page at a time; markers only if `fields` is `False`."""
        offset: Any = None  # an id, whose type depends on the transport
        await self.read([], fields=False)
        while True:
            records, offset = await self.connection.call(
                lambda client, offset=offset: client.scroll(
                    self.name,
                    scroll_filter=condition,
                    limit=PAGE,
                    offset=offset,
                    with_payload=_with_marker(fields),
                    with_vectors=[vector] if vector else False,
                    shard_key_selector=self.shard,
                )
            )
            if records:
                yield _unmarked(records)
            if offset is None:
                return

    async def all(self, *conditions: Clause, fields: Fields = True, vector: str | None = None) -> list[FoundPoint]:
        """All points that satisfy the conditions."""
        pages = self.pages(all_of(*conditions), fields=fields, vector=vector)
        return [point async for page in pages for point in page]

    async def having(
        self,
        name: str,
        values: Sequence[str | int],
        condition: Clause,
        *,
        fields: Fields = True,
        vector: str | None = None,
    ) -> list[FoundPoint]:
        """All points whose field of this name is one of these values, and that satisfy the condition."""
        found: list[FoundPoint] = []
        for some in by(NAMED, values):
            found += await self.all(condition, any_of(name, some), fields=fields, vector=vector)
        return found

    async def query(self, requests: Sequence[models.QueryRequest]) -> list[list[FoundPoint]]:
        """The answers to several queries, in one round trip; markers only where no payload is asked for."""
        if not requests:
            return []
        sent = [
            one.model_copy(update={"shard_key": self.shard, "with_payload": _with_marker(one.with_payload)})
            for one in requests
        ]
        if self.guards:
            owners = all_of(among([*self.guards]))
            sent.append(models.QueryRequest(filter=owners, limit=len(self.guards), with_payload=["_epoch"]))
        responses = await self.connection.call(lambda client: client.query_batch_points(self.name, requests=sent))
        answers = [_unmarked(response.points) for response in responses]
        if self.guards:
            self._check(answers.pop())
        return answers

    def _check(self, points: Sequence[FoundPoint]) -> None:
        """Raise `EpochError` if an owner was erased meanwhile."""
        now = {point.id: int(point.payload.get("_epoch", 0)) for point in points}
        if any(now.get(point, 0) != epoch for point, epoch in self.guards.items()):
            raise EpochError

    async def values(self, field: str, condition: models.Filter | None, *, limit: int) -> list[str]:
        """The values of a keyword field, most frequent first."""
        response = await self.connection.call(
            lambda client: client.facet(
                self.name, key=field, facet_filter=condition, limit=limit, shard_key_selector=self.shard
            )
        )
        return [str(hit.value) for hit in response.hits]

    async def write(self, *operations: models.UpdateOperation) -> None:
        """Apply the operations in order; returns when as many replicas as the layout requires have applied them."""

        async def attempt(client: AsyncQdrantClient) -> None:
            results = await client.batch_update_points(
                self.name, update_operations=operations, wait=True, ordering=models.WriteOrdering.MEDIUM
            )
            if any(result.status != models.UpdateStatus.COMPLETED for result in results):
                raise NotAppliedError(f"a write to {self.name!r} was accepted but not applied in time")

        await self.connection.call(attempt)

    async def upsert(self, points: Sequence[Point], was: Mapping[str, str] | None = None) -> None:
        """Replace points that are in these states, each in its own, or with `None` insert those that do not exist. A
        request that is large, or too large for the server, is halved; raises `TooLargeError` if a single point is."""
        if len(points) == 1 or sum(point.size for point in points) <= MAX_BYTES:
            by_state: defaultdict[str | None, list[Point]] = defaultdict(list)
            for point in points:
                by_state[None if was is None else was[point.id]].append(point)
            try:
                await self.write(*(self._upsert(some, state) for state, some in by_state.items()))
            except TooLargeError:
                if len(points) == 1:
                    raise
            else:
                return
        half = len(points) // 2
        await self.upsert(points[:half], was)
        await self.upsert(points[half:], was)

    def _upsert(self, points: Sequence[Point], state: str | None) -> models.UpsertOperation:
        structs = [point.to_struct() for point in points]
        unchanged = None if state is None else all_of(same("_write", state))
        mode = models.UpdateMode.INSERT_ONLY if state is None else models.UpdateMode.UPDATE_ONLY
        upsert = models.PointsList(points=structs, shard_key=self.shard, update_filter=unchanged, update_mode=mode)
        return models.UpsertOperation(upsert=upsert)

    async def probe(self) -> None:
        """Make a write, which is for no point."""
        await self.write(self.set_fields({"_probe": True}, among([_NO_POINT])))

    def set_fields(self, payload: Payload, *conditions: Clause) -> models.SetPayloadOperation:
        """Set payload fields of the points that satisfy the conditions."""
        given = models.SetPayload(payload=payload, filter=all_of(*conditions), shard_key=self.shard)
        return models.SetPayloadOperation(set_payload=given)

    def delete(self, *conditions: Clause) -> models.DeleteOperation:
        """Delete the points that satisfy the conditions."""
        return models.DeleteOperation(delete=models.FilterSelector(filter=all_of(*conditions), shard_key=self.shard))


def _found(points: Sequence[models.Record] | Sequence[models.ScoredPoint]) -> list[FoundPoint]:
    return [FoundPoint(str(one.id), one.payload or {}, one.vector, getattr(one, "score", 0.0)) for one in points]


def _with_marker(fields: Any) -> Any:
    return [*fields, "_marker"] if isinstance(fields, list | tuple) else fields


def _unmarked(points: Sequence[models.Record] | Sequence[models.ScoredPoint]) -> list[FoundPoint]:
    """A server finds points first and reads them then: a record that is deleted in between comes as its marker."""
    return [point for point in _found(points) if point.payload.get("_marker") not in ("deleted", "forgotten")]


def by(count: int, items: Collection[T]) -> Iterable[list[T]]:
    """The items in lists of at most `count`."""
    whole = list(items)
    return (whole[start : start + count] for start in range(0, len(whole), count))


class ForeignPoint(NamedTuple):
    """A point that another program made, without its vectors."""

    id: str
    payload: Mapping[str, Any]


async def foreign_points(server: Server | None, collection: str) -> AsyncIterator[list[ForeignPoint]]:
    """All points of a collection that another program made, by id, a page at a time; runs on the core loop (`on_core`).

    What `server` leaves out comes from the environment, as for `QdrantStore`. Raises `StorageError` if it cannot be
    reached or has no such collection.
    """
    connection = Connection((server or Server()).resolved(), Patience())
    await connection.open()
    try:
        async for page in Points(connection, collection, Layout()).pages(models.Filter()):
            yield [ForeignPoint(point.id, point.payload) for point in page]
    finally:
        await connection.close()
