"""A collection, read and written with the consistency of the layout. All requests are idempotent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from memory_core.storage.qdrant.client import AsyncQdrantClient, models
from memory_core.storage.qdrant.codec import TEXT, Payload
from memory_core.storage.qdrant.connection import Connection
from memory_core.storage.qdrant.retry import NotAppliedError
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout
from memory_core.storage.qdrant.where import Clause, all_of, among, any_of

PAGE: Final = 1_000
"""Maximum number of points read or named by one request."""

Fields = Sequence[str] | bool
"""Which payload fields to fetch: some, all (`True`) or none (`False`)."""


@dataclass(frozen=True, slots=True)
class Points:
    """A collection, for requests of one owner or (with `shard=None`) of the store itself."""

    connection: Connection
    name: str
    layout: Layout
    shard: models.ShardKeyWithFallback | None = None

    def for_owner(self, key: str) -> Points:
        """The same collection for requests about one owner, which may have a dedicated shard."""
        if not self.layout.tenant_shards:
            return self
        return replace(self, shard=models.ShardKeyWithFallback(target=key, fallback=SHARED_SHARD))

    async def read(
        self, ids: Sequence[str], *, fields: Fields = True, vectors: Sequence[str] = ()
    ) -> list[models.Record]:
        """The existing ones among the points, in no particular order."""
        found: list[models.Record] = []
        for start in range(0, len(ids), PAGE):
            some = list(ids[start : start + PAGE])
            found += await self.connection.call(
                lambda client, some=some: client.retrieve(
                    self.name,
                    ids=some,
                    with_payload=_selector(fields),
                    with_vectors=list(vectors) or False,
                    consistency=self._consistency,
                    shard_key_selector=self.shard,
                )
            )
        return found

    async def pages(
        self, condition: models.Filter, *, fields: Fields = True, vectors: bool = False
    ) -> AsyncIterator[list[models.Record]]:
        """All points that satisfy the condition, by id, a page at a time."""
        offset: Any = None  # an id, whose type depends on the transport
        while True:
            records, offset = await self.connection.call(
                lambda client, offset=offset: client.scroll(
                    self.name,
                    scroll_filter=condition,
                    limit=PAGE,
                    offset=offset,
                    with_payload=_selector(fields),
                    with_vectors=[TEXT] if vectors else False,
                    consistency=self._consistency,
                    shard_key_selector=self.shard,
                )
            )
            if records:
                yield records
            if offset is None:
                return

    async def all(
        self, condition: models.Filter, *, fields: Fields = True, vectors: bool = False
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
        vectors: bool = False,
    ) -> list[models.Record]:
        """All points whose field is one of these values, and that satisfy the condition."""
        found: list[models.Record] = []
        for start in range(0, len(values), PAGE):
            chosen = all_of(where, any_of(field, values[start : start + PAGE]))
            found += await self.all(chosen, fields=fields, vectors=vectors)
        return found

    async def query(self, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        """The answers to several queries, in one round trip."""
        if not requests:
            return []
        sharded = [request.model_copy(update={"shard_key": self.shard}) for request in requests]
        responses = await self.connection.call(
            lambda client: client.query_batch_points(self.name, requests=sharded, consistency=self._consistency)
        )
        return [response.points for response in responses]

    async def values(self, field: str, condition: models.Filter, *, limit: int) -> list[str]:
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

    def insert(self, points: Sequence[models.PointStruct]) -> models.UpsertOperation:
        """Create points; an existing one is not changed."""
        return self._upsert(points, models.UpdateMode.INSERT_ONLY, None)

    def rewrite(self, points: Sequence[models.PointStruct], condition: models.Filter) -> models.UpsertOperation:
        """Replace existing points that satisfy the condition."""
        return self._upsert(points, models.UpdateMode.UPDATE_ONLY, condition)

    def put(self, points: Sequence[models.PointStruct]) -> models.UpsertOperation:
        """Create or replace points."""
        return self._upsert(points, models.UpdateMode.UPSERT, None)

    def set_fields(self, payload: Payload, condition: models.Filter) -> models.SetPayloadOperation:
        """Set payload fields of the points that satisfy the condition."""
        return models.SetPayloadOperation(
            set_payload=models.SetPayload(payload=payload, filter=condition, shard_key=self.shard)
        )

    def drop_vectors(self, name: str, condition: models.Filter) -> models.DeleteVectorsOperation:
        """Remove a vector from the points that satisfy the condition."""
        return models.DeleteVectorsOperation(
            delete_vectors=models.DeleteVectors(vector=[name], filter=condition, shard_key=self.shard)
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

    def delete_points(self, ids: Collection[str]) -> models.DeleteOperation:
        """Delete points by id."""
        return self.delete(models.Filter(must=[among(list(ids))]))

    def _upsert(
        self, points: Sequence[models.PointStruct], mode: models.UpdateMode, condition: models.Filter | None
    ) -> models.UpsertOperation:
        upsert = models.PointsList(points=list(points), shard_key=self.shard, update_filter=condition, update_mode=mode)
        return models.UpsertOperation(upsert=upsert)

    @property
    def _consistency(self) -> models.ReadConsistency | None:
        wanted = self.layout.consistency
        return models.ReadConsistencyType(wanted) if isinstance(wanted, str) else wanted


def _selector(fields: Fields) -> bool | list[str]:
    return fields if isinstance(fields, bool) else list(fields)
