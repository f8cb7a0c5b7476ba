"""The engine of a Qdrant server, in process: `qdrant-edge-py` runs the Rust code that searches and stores.

What it cannot show: shards, replicas, snapshots, and how fast a server is.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import qdrant_edge as edge
from qdrant_client import models
from qdrant_client.http.models import QueryResponse

from tests.storage.qdrant.engine import COMPLETED, Call, Engine


class EdgeEngine(Engine):
    """Each collection is one shard in a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memory-core-edge-"))
        self.shards: dict[str, Any] = {}

    def close(self) -> None:
        for shard in self.shards.values():
            shard.close()
        shutil.rmtree(self.folder)

    def clear(self) -> None:
        """Delete all points; to make the collections anew would take seconds."""
        for shard in self.shards.values():
            shard.update(edge.UpdateOperation.delete_points_by_filter(edge.Filter()))

    def optimize(self) -> None:
        """Build graphs and quantised vectors, which a server does by itself."""
        for shard in self.shards.values():
            shard.optimize()

    def run(self, call: Call) -> Any:
        try:
            return super().run(call)
        except edge_errors() as error:
            raise ValueError(str(error)) from error

    def run_half(self, call: Call) -> None:
        operations = call.body.operations
        self._write(call.collection, models.UpdateOperations(operations=operations[: len(operations) // 2]))

    def _exists(self, collection: str, _: None) -> models.CollectionExistence:
        return models.CollectionExistence(exists=collection in self.shards)

    def _create(self, collection: str, body: models.CreateCollection) -> bool:
        vectors = {name: _vector_params(params) for name, params in _named(body.vectors).items()}
        sparse = {
            name: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf if params.modifier else None,
                on_disk=params.index.on_disk if params.index else None,
            )
            for name, params in (body.sparse_vectors or {}).items()
        }
        config = edge.EdgeConfig(
            vectors=vectors,
            sparse_vectors=sparse,
            hnsw_config=edge.HnswIndexConfig(m=0, payload_m=16, ef_construct=100, full_scan_threshold=10),
            quantization_config=(
                edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8, quantile=0.99, always_ram=True)
                if body.quantization_config
                else None
            ),
            wal_enabled=False,
        )
        self.shards[collection] = edge.EdgeShard.create(str(self.folder / collection), config)
        return super()._create(collection, body)  # an empty twin in local mode answers what it looks like

    def _index(self, collection: str, body: models.CreateFieldIndex) -> models.UpdateResult:
        kind: Any = body.field_schema
        place = {"on_disk": kind.on_disk, "enable_hnsw": kind.enable_hnsw}
        schemas: dict[str, Callable[[], Any]] = {
            "keyword": lambda: edge.KeywordIndexParams(is_tenant=kind.is_tenant, **place),
            "datetime": lambda: edge.DatetimeIndexParams(**place),
            "float": lambda: edge.FloatIndexParams(**place),
            "text": lambda: edge.TextIndexParams(edge.TokenizerType.Whitespace, lowercase=kind.lowercase, **place),
            "integer": lambda: edge.IntegerIndexParams(lookup=True, range=True, **place),
        }
        schema = schemas[kind.type.value]()
        self.shards[collection].update(edge.UpdateOperation.create_field_index(body.field_name, schema))
        return super()._index(collection, body)

    def _vector_name(self, collection: str, body: tuple[str, Any]) -> models.UpdateResult:
        name, config = body[0], body[1].dense
        several = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim) if config.multivector_config else None
        self.shards[collection].update(
            edge.UpdateOperation.create_dense_vector(
                name,
                config.size,
                edge.Distance.Cosine,
                several,
                edge.VectorStorageDatatype.Float16,
            )
        )
        return super()._vector_name(collection, body)

    def _retrieve(self, collection: str, body: models.PointRequest) -> list[models.Record]:
        found = self.shards[collection].retrieve(
            [str(point) for point in body.ids],
            with_payload=_payload(body.with_payload),
            with_vector=body.with_vector or False,
        )
        return [models.Record(id=str(record.id), payload=record.payload, vector=record.vector) for record in found]

    def _scroll(self, collection: str, body: models.ScrollRequest) -> models.ScrollResult:
        points, offset = self.shards[collection].scroll(
            edge.ScrollRequest(
                offset=None if body.offset is None else str(body.offset),
                limit=body.limit or 10,
                filter=_filter(body.filter),
                with_payload=_payload(body.with_payload),
                with_vector=body.with_vector or False,
            )
        )
        return models.ScrollResult(
            points=[models.Record(id=str(point.id), payload=point.payload, vector=point.vector) for point in points],
            next_page_offset=None if offset is None else str(offset),
        )

    def _query(self, collection: str, body: models.QueryRequestBatch) -> list[QueryResponse]:
        self._check_indexes(collection, body.searches)
        shard = self.shards[collection]
        return [QueryResponse(points=self._search(shard, search)) for search in body.searches]

    def _search(self, shard: Any, search: models.QueryRequest) -> list[models.ScoredPoint]:
        query: Any = search.query
        shape: dict[str, Any] = {
            "filter": _filter(search.filter),
            "with_payload": _payload(search.with_payload or False),
            "with_vector": search.with_vector or False,
        }
        if query is None or isinstance(query, models.OrderByQuery):
            order = None
            if query is not None:
                by: Any = query.order_by
                direction = edge.Direction.Desc if by.direction == "desc" else edge.Direction.Asc
                order = edge.OrderBy(by.key, direction)
            found, _ = shard.scroll(edge.ScrollRequest(limit=search.limit, order_by=order, **shape))
            return [
                models.ScoredPoint(id=str(p.id), version=0, score=0.0, payload=p.payload, vector=p.vector)
                for p in found
            ]
        nearest: Any = query.nearest
        if isinstance(nearest, models.SparseVector):
            nearest = edge.SparseVector(nearest.indices, nearest.values)
        found = shard.query(
            edge.QueryRequest(
                limit=search.limit or 10,
                query=edge.Query.Nearest(nearest, search.using),
                params=_params(search.params),
                **shape,
            )
        )
        return [models.ScoredPoint(id=str(p.id), version=p.version, score=p.score, payload=p.payload) for p in found]

    def _facet(self, collection: str, body: models.FacetRequest) -> models.FacetResponse:
        response = self.shards[collection].facet(
            edge.FacetRequest(body.key, limit=body.limit or 10, filter=_filter(body.filter))
        )
        return models.FacetResponse(
            hits=[models.FacetValueHit(value=hit.value, count=hit.count) for hit in response.hits]
        )

    def _write(self, collection: str, body: models.UpdateOperations) -> list[models.UpdateResult]:
        for operation in body.operations:
            self.shards[collection].update(_operation(operation))
        return [COMPLETED for _ in body.operations]


def edge_errors() -> tuple[type[Exception], ...]:
    return (edge.EdgeError,) if hasattr(edge, "EdgeError") else (RuntimeError,)


def _named(vectors: Any) -> dict[str, models.VectorParams]:
    return dict(vectors or {})


def _vector_params(params: models.VectorParams) -> Any:
    return edge.EdgeVectorParams(
        size=params.size,
        distance=edge.Distance.Cosine,
        multivector_config=(
            edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim) if params.multivector_config else None
        ),
        datatype=edge.VectorStorageDatatype.Float16,
        on_disk=params.on_disk,
    )


def _payload(selector: Any) -> Any:
    return True if selector is None else selector


def _params(params: models.SearchParams | None) -> Any:
    if params is None:
        return None
    wanted: dict[str, Any] = {"hnsw_ef": params.hnsw_ef, "exact": bool(params.exact)}
    if params.quantization is not None:
        held = params.quantization
        wanted["quantization"] = edge.QuantizationSearchParams(bool(held.ignore), held.rescore, held.oversampling)
    if isinstance(params.idf, models.IdfCorpusParams):
        wanted["idf"] = edge.IdfParams(_filter(params.idf.corpus))
    return edge.SearchParams(**wanted)


def _operation(operation: Any) -> Any:
    make = edge.UpdateOperation
    match operation:
        case models.UpsertOperation():
            upsert: Any = operation.upsert
            mode = {
                None: None,
                models.UpdateMode.UPSERT: edge.UpdateMode.Upsert,
                models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
                models.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
            }[upsert.update_mode]
            points = [edge.Point(str(p.id), _vectors(p.vector), p.payload) for p in upsert.points]
            return make.upsert_points(points, _filter(upsert.update_filter), mode)
        case models.DeleteOperation():
            selector: Any = operation.delete
            return make.delete_points_by_filter(_filter(selector.filter))
        case models.SetPayloadOperation(set_payload=change):
            return make.set_payload_by_filter(_filter(change.filter), change.payload)
        case models.DeleteVectorsOperation(delete_vectors=change):
            return make.delete_vectors_by_filter(_filter(change.filter), change.vector)
        case models.UpdateVectorsOperation(update_vectors=change):
            changed = [edge.PointVectors(str(p.id), _vectors(p.vector)) for p in change.points]
            return make.update_vectors(changed, _filter(change.update_filter))
        case _:
            raise AssertionError(operation)


def _vectors(vectors: Any) -> dict[str, Any]:
    return {
        name: edge.SparseVector(vector.indices, vector.values) if isinstance(vector, models.SparseVector) else vector
        for name, vector in vectors.items()
    }


def _filter(condition: models.Filter | None) -> Any:
    if condition is None:
        return None
    clauses: dict[str, Any] = {name: _conditions(getattr(condition, name)) for name in ("must", "should", "must_not")}
    return edge.Filter(**{name: clause for name, clause in clauses.items() if clause is not None})


def _conditions(conditions: Any) -> list[Any] | None:
    if conditions is None:
        return None
    some: Sequence[Any] = conditions if isinstance(conditions, list) else [conditions]
    return [_condition(condition) for condition in some]


def _condition(condition: Any) -> Any:
    match condition:
        case models.Filter():
            return _filter(condition)
        case models.HasIdCondition(has_id=ids):
            return edge.HasIdCondition({str(point) for point in ids})
        case models.HasVectorCondition(has_vector=name):
            return edge.HasVectorCondition(name)
        case models.IsEmptyCondition(is_empty=field):
            return edge.IsEmptyCondition(field.key)
        case models.FieldCondition(key=key, match=models.MatchValue(value=value)):
            return edge.FieldCondition(key, match=edge.MatchValue(value))
        case models.FieldCondition(key=key, match=models.MatchText(text=text)):
            return edge.FieldCondition(key, match=edge.MatchText(text))
        case models.FieldCondition(key=key, match=models.MatchAny(any=values)):
            return edge.FieldCondition(key, match=edge.MatchAny(values))
        case models.FieldCondition(key=key, range=models.DatetimeRange() as bounds):
            return edge.FieldCondition(
                key, range=edge.RangeDateTime(**_bounds(bounds, lambda moment: moment.isoformat()))
            )
        case models.FieldCondition(key=key, range=models.Range() as bounds):
            return edge.FieldCondition(key, range=edge.RangeFloat(**_bounds(bounds, float)))
        case _:
            raise AssertionError(condition)


def _bounds(bounds: Any, convert: Any) -> dict[str, Any]:
    held = {name: getattr(bounds, name) for name in ("gte", "gt", "lte", "lt")}
    return {name: None if value is None else convert(value) for name, value in held.items()}
