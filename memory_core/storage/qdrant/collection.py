"""A collection, read and written with the consistency of the layout. All requests are idempotent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from memory_core.storage.qdrant.client import AsyncQdrantClient, models
from memory_core.storage.qdrant.codec import Payload, Point
from memory_core.storage.qdrant.connection import Connection
from memory_core.storage.qdrant.retry import NotAppliedError, TooLargeError
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout
from memory_core.storage.qdrant.where import Clause, all_of, among, any_of

T = TypeVar("T")

PAGE: Final = 256
"""Maximum number of points read by one request."""
NAMED: Final = 1_000
"""Maximum number of values named by one condition."""
MAX_POINTS: Final = 128
MAX_BYTES: Final = 8_000_000
"""Maximum number of points, and estimated bytes, of one write; servers accept 32 MB by default."""

Fields = Sequence[str] | bool
"""Which payload fields to fetch: some, all (`True`) or none (`False`)."""
Found = models.Record | models.ScoredPoint


class EpochError(Exception):
    """The owner was erased since its epoch was read; read or plan again in the new epoch."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the owner is in epoch {epoch} now")
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class Guard:
    """The epoch in which an owner is read and written, checked with every `read` and `query`."""

    point: str
    epoch: int

    def check(self, points: Iterable[Found]) -> None:
        """Raise `EpochError` if the owner's point has another epoch."""
        found = max([int((point.payload or {}).get("_epoch", 0)) for point in points], default=0)
        if found != self.epoch:
            raise EpochError(found)


@dataclass(frozen=True, slots=True)
class Points:
    """A collection, for requests of one owner or (with `shard=None`) of the store itself."""

    connection: Connection
    name: str
    layout: Layout
    shard: models.ShardKeySelector | models.ShardKeyWithFallback | str | None = None
    guard: Guard | None = None

    def for_owner(self, shard: str, guard: Guard | None) -> Points:
        """The same collection for requests about one owner, which may have a dedicated shard."""
        key = models.ShardKeyWithFallback(target=shard, fallback=SHARED_SHARD) if self.layout.tenant_shards else None
        return replace(self, shard=key, guard=guard)

    @property
    def shared(self) -> Points:
        """The same collection for points that belong to no owner."""
        return replace(self, shard=SHARED_SHARD if self.layout.tenant_shards else None, guard=None)

    async def read(
        self, ids: Sequence[str], *, fields: Fields = True, vectors: Sequence[str] = ()
    ) -> list[models.Record]:
        """The existing ones among the points, in no particular order, from all shards."""
        found: list[models.Record] = []
        guard = self.guard
        for start in range(0, max(len(ids), 1 if guard else 0), PAGE):
            some = [*ids[start : start + PAGE], *([guard.point] if guard else [])]
            wanted = _with_epoch(fields) if guard else _selector(fields)
            records = await self.connection.call(
                lambda client, some=some, wanted=wanted: client.retrieve(
                    self.name,
                    ids=some,
                    with_payload=wanted,
                    with_vectors=list(vectors) or False,
                    consistency=self._consistency,
                )
            )
            if guard is not None:
                guard.check(record for record in records if str(record.id) == guard.point)
            found += [record for record in records if guard is None or str(record.id) != guard.point]
        return found

    async def pages(
        self, condition: models.Filter, *, fields: Fields = True, vectors: Sequence[str] = ()
    ) -> AsyncIterator[list[models.Record]]:
        """All points that satisfy the condition, by id, a page at a time."""
        offset: Any = None  # an id, whose type depends on the transport
        await self.check_epoch()
        while True:
            records, offset = await self.connection.call(
                lambda client, offset=offset: client.scroll(
                    self.name,
                    scroll_filter=condition,
                    limit=PAGE,
                    offset=offset,
                    with_payload=_selector(fields),
                    with_vectors=list(vectors) or False,
                    consistency=self._consistency,
                    shard_key_selector=self.shard,
                )
            )
            if records:
                yield records
            if offset is None:
                return

    async def all(
        self, condition: models.Filter, *, fields: Fields = True, vectors: Sequence[str] = ()
    ) -> list[models.Record]:
        """All points that satisfy the condition."""
        return [record async for page in self.pages(condition, fields=fields, vectors=vectors) for record in page]

    async def having(
        self,
        field: str,
        values: Sequence[str] | Sequence[int],
        where: Clause,
        *,
        fields: Fields = True,
        vectors: Sequence[str] = (),
    ) -> list[models.Record]:
        """All points whose field is one of these values, and that satisfy the condition."""
        found: list[models.Record] = []
        for start in range(0, len(values), NAMED):
            chosen = all_of(where, any_of(field, values[start : start + NAMED]))
            found += await self.all(chosen, fields=fields, vectors=vectors)
        return found

    async def query(self, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        """The answers to several queries, in one round trip."""
        if not requests:
            return []
        sent = [request.model_copy(update={"shard_key": self.shard}) for request in requests]
        if self.guard is not None:
            sent.append(models.QueryRequest(filter=all_of(among([self.guard.point])), limit=1, with_payload=["_epoch"]))
        responses = await self.connection.call(
            lambda client: client.query_batch_points(self.name, requests=sent, consistency=self._consistency)
        )
        if self.guard is not None:
            self.guard.check(responses.pop().points)
        return [response.points for response in responses]

    async def check_epoch(self) -> None:
        """Raise `EpochError` if the owner was erased meanwhile."""
        if self.guard is not None:
            await self.read([], fields=["_epoch"])

    async def values(self, field: str, condition: models.Filter | None, *, limit: int) -> list[str]:
        """The values of a keyword field, most frequent first."""
        response = await self.connection.call(
            lambda client: client.facet(
                self.name,
                key=field,
                facet_filter=condition,
                limit=limit,
                consistency=self._consistency,
                shard_key_selector=self.shard,
            )
        )
        return [str(hit.value) for hit in response.hits]

    async def write(self, *operations: models.UpdateOperation) -> None:
        """Apply the operations in order; returns when as many replicas as the layout requires have applied them."""
        if not operations:
            return

        async def attempt(client: AsyncQdrantClient) -> None:
            results = await client.batch_update_points(
                self.name, update_operations=operations, wait=True, ordering=models.WriteOrdering(self.layout.ordering)
            )
            if any(result.status != models.UpdateStatus.COMPLETED for result in results):
                raise NotAppliedError(f"a write to {self.name!r} was accepted but not applied in time")

        await self.connection.call(attempt)

    async def upsert(
        self, points: Sequence[Point], mode: models.UpdateMode, condition: models.Filter | None = None
    ) -> None:
        """Write points; a request that a server finds too large is halved.

        Raises:
            TooLargeError: A single point is too large.
        """
        upsert = models.PointsList(
            points=[point.to_struct() for point in points],
            shard_key=self.shard,
            update_filter=condition,
            update_mode=mode,
        )
        try:
            await self.write(models.UpsertOperation(upsert=upsert))
        except TooLargeError:
            if len(points) == 1:
                raise
            half = len(points) // 2
            await self.upsert(points[:half], mode, condition)
            await self.upsert(points[half:], mode, condition)

    def set_fields(self, payload: Payload, condition: models.Filter) -> models.SetPayloadOperation:
        """Set payload fields of the points that satisfy the condition."""
        return models.SetPayloadOperation(
            set_payload=models.SetPayload(payload=payload, filter=condition, shard_key=self.shard)
        )

    def set_vectors(
        self, vectors: Sequence[models.PointVectors], condition: models.Filter
    ) -> models.UpdateVectorsOperation:
        """Set vectors of points that satisfy the condition."""
        return models.UpdateVectorsOperation(
            update_vectors=models.UpdateVectors(points=list(vectors), update_filter=condition, shard_key=self.shard)
        )

    def delete(self, condition: models.Filter) -> models.DeleteOperation:
        """Delete the points that satisfy the condition."""
        return models.DeleteOperation(delete=models.FilterSelector(filter=condition, shard_key=self.shard))

    @property
    def _consistency(self) -> models.ReadConsistency | None:
        wanted = self.layout.consistency
        return models.ReadConsistencyType(wanted) if isinstance(wanted, str) else wanted


def _selector(fields: Fields) -> bool | list[str]:
    return fields if isinstance(fields, bool) else list(fields)


def _with_epoch(fields: Fields) -> bool | list[str]:
    return fields is True or ["_epoch", *(fields or ())]


def portions(points: Iterable[Point]) -> Iterable[list[Point]]:
    """The points, split into requests of a size that servers accept."""
    some: list[Point] = []
    size = 0
    for point in points:
        if some and (len(some) == MAX_POINTS or size + point.size > MAX_BYTES):
            yield some
            some, size = [], 0
        some.append(point)
        size += point.size
    if some:
        yield some


def by(count: int, items: Collection[T]) -> Iterable[list[T]]:
    """The items in lists of at most `count`."""
    whole = list(items)
    return (whole[start : start + count] for start in range(0, len(whole), count))
