"""The engine of a loopback server: it checks a request with the client's own models and hands it to local mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from qdrant_client import QdrantClient, models

VERSION = "1.20.0"
LATE_SECONDS = 1.6
"""Longer than the shortest time-out a client can have, which is one second."""


class Fault(Enum):
    """The faults of one request."""

    UNAVAILABLE = auto()
    """503, gRPC UNAVAILABLE; nothing was done."""
    BUSY = auto()
    """429 with Retry-After, gRPC RESOURCE_EXHAUSTED; nothing was done."""
    RESET = auto()
    """The connection is cut before anything was done."""
    LOST = auto()
    """It was done, and the connection is cut before the answer."""
    LATE = auto()
    """It was done, and the answer comes after the client's time-out."""
    HALF = auto()
    """Half of a write was done, and then the connection is cut."""


@dataclass(frozen=True)
class Call:
    """One request that reached the server."""

    number: int
    name: str
    """`retrieve`, `scroll`, `query`, `facet`, `write`, or what else it is."""
    collection: str
    body: Any
    """The parsed body: a model of the client."""

    @property
    def is_write(self) -> bool:
        return self.name == "write"


Decide = Callable[[Call], Fault | None]


def no_faults(_: Call) -> Fault | None:
    return None


@dataclass
class Engine:
    """Collections in memory, which survive their server's restart, and a record of what was asked."""

    client: QdrantClient = field(default_factory=lambda: QdrantClient(":memory:"))
    decide: Decide = no_faults
    calls: list[Call] = field(default_factory=list)
    created: dict[str, models.CreateCollection] = field(default_factory=dict)
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict)
    shard_keys: dict[str, list[str]] = field(default_factory=dict)
    keep_calls: bool = True
    _count: int = 0

    def note(self, name: str, collection: str, body: Any) -> tuple[Call, Fault | None]:
        """Count a request and decide whether it fails."""
        self._count += 1
        call = Call(self._count, name, collection, body)
        if self.keep_calls:
            self.calls.append(call)
        return call, self.decide(call)

    def reset(self) -> None:
        """Forget everything, as if just started."""
        self.client = QdrantClient(":memory:")
        self.decide = no_faults
        self.keep_calls = True
        for held in (self.calls, self.created, self.indexes, self.shard_keys):
            held.clear()
        self._count = 0

    def run(self, call: Call) -> Any:
        """Do what was asked; what local mode refuses raises `ValueError`, a missing point `KeyError`."""
        if call.is_write:
            self._check_shards(call)
        return getattr(self, f"_{call.name}")(call.collection, call.body)

    def run_half(self, call: Call) -> None:
        """Do the first half of a write."""
        operations = call.body.operations
        for operation in operations[: len(operations) // 2]:
            self.client.batch_update_points(call.collection, [operation])
        if operations and isinstance(operations[len(operations) // 2], models.UpsertOperation):
            upsert = operations[len(operations) // 2].upsert
            half = upsert.points[: len(upsert.points) // 2]
            if half:
                smaller = upsert.model_copy(update={"points": half})
                self.client.batch_update_points(call.collection, [models.UpsertOperation(upsert=smaller)])

    def _exists(self, collection: str, _: None) -> models.CollectionExistence:
        return models.CollectionExistence(exists=self.client.collection_exists(collection))

    def _create(self, collection: str, body: models.CreateCollection) -> bool:
        if (body.sharding_method == models.ShardingMethod.CUSTOM) and body.shard_number == 0:
            raise ValueError("shard_number")
        self.client.create_collection(
            collection, vectors_config=body.vectors or {}, sparse_vectors_config=body.sparse_vectors
        )
        self.created[collection] = body
        return True

    def _shard_key(self, collection: str, body: models.CreateShardingKey) -> bool:
        self.shard_keys.setdefault(collection, []).append(str(body.shard_key))
        return True

    def _shard_keys(self, collection: str, _: None) -> models.ShardKeysResponse:
        return models.ShardKeysResponse(
            shard_keys=[models.ShardKeyDescription(key=key) for key in self.shard_keys.get(collection, [])]
        )

    def _info(self, collection: str, _: None) -> models.CollectionInfo:
        if not self.client.collection_exists(collection):
            raise KeyError(collection)
        info = self.client.get_collection(collection)
        body = self.created[collection]
        info.config.params.shard_number = body.shard_number or 1
        info.config.params.replication_factor = body.replication_factor or 1
        info.config.params.write_consistency_factor = body.write_consistency_factor or 1
        info.config.params.sharding_method = body.sharding_method
        info.payload_schema = {
            name: models.PayloadIndexInfo(data_type=models.PayloadSchemaType(schema.type.value), points=0)
            for name, schema in self.indexes.get(collection, {}).items()
        }
        return info

    def _index(self, collection: str, body: models.CreateFieldIndex) -> models.UpdateResult:
        self.indexes.setdefault(collection, {})[body.field_name] = body.field_schema
        return COMPLETED

    def _vector_name(self, collection: str, body: tuple[str, models.VectorNameConfig]) -> models.UpdateResult:
        self.client.create_vector_name(collection, *body)
        return COMPLETED

    def _retrieve(self, collection: str, body: models.PointRequest) -> list[models.Record]:
        return self.client.retrieve(
            collection,
            body.ids,
            with_payload=_or_true(body.with_payload),
            with_vectors=body.with_vector or False,
        )

    def _scroll(self, collection: str, body: models.ScrollRequest) -> models.ScrollResult:
        points, offset = self.client.scroll(
            collection,
            scroll_filter=body.filter,
            limit=body.limit or 10,
            offset=body.offset,
            order_by=body.order_by,
            with_payload=_or_true(body.with_payload),
            with_vectors=body.with_vector or False,
        )
        return models.ScrollResult(points=points, next_page_offset=offset)

    def _query(self, collection: str, body: models.QueryRequestBatch) -> list[models.QueryResponse]:
        self._check_indexes(collection, body.searches)
        local = [
            search.model_copy(update={"params": _local_params(search.params), "shard_key": None})
            for search in body.searches
        ]
        return self.client.query_batch_points(collection, local)

    def _facet(self, collection: str, body: models.FacetRequest) -> models.FacetResponse:
        return self.client.facet(collection, body.key, facet_filter=body.filter, limit=body.limit or 10)

    def _write(self, collection: str, body: models.UpdateOperations) -> list[models.UpdateResult]:
        self.client.batch_update_points(collection, body.operations)
        return [COMPLETED for _ in body.operations]

    def _check_shards(self, call: Call) -> None:
        """Check that each write names a shard, where shards have keys: a server wants that."""
        if self.created[call.collection].sharding_method == models.ShardingMethod.CUSTOM:
            for operation in call.body.operations:
                (change,) = vars(operation).values()
                if not change.shard_key:
                    raise ValueError("Shard key not specified")

    def _check_indexes(self, collection: str, searches: Sequence[models.QueryRequest]) -> None:
        """A server orders by indexed fields only."""
        for search in searches:
            if isinstance(search.query, models.OrderByQuery):
                key = search.query.order_by if isinstance(search.query.order_by, str) else search.query.order_by.key
                if key not in self.indexes.get(collection, {}):
                    raise ValueError(f"no range index for {key!r}")


COMPLETED = models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)


def _or_true(selector: Any) -> Any:
    return True if selector is None else selector


def _local_params(params: models.SearchParams | None) -> models.SearchParams | None:
    """Local mode knows `idf` alone and warns about the rest."""
    return None if params is None or params.idf is None else models.SearchParams(idf=params.idf)
