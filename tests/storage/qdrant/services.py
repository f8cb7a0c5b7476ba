"""The services of the loopback server's gRPC side."""

# ruff: noqa: N802  (the names are those of the protocol)

from __future__ import annotations

import asyncio
from typing import Any

import grpc  # type: ignore[import-untyped]
from qdrant_client import grpc as messages
from qdrant_client import models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc
from qdrant_client.grpc.collections_service_pb2_grpc import CollectionsServicer, add_CollectionsServicer_to_server
from qdrant_client.grpc.points_service_pb2_grpc import PointsServicer, add_PointsServicer_to_server
from qdrant_client.grpc.qdrant_pb2_grpc import QdrantServicer, add_QdrantServicer_to_server

from tests.storage.qdrant.engine import LATE_SECONDS, VERSION, Engine, Fault


def make_server(engine: Engine) -> Any:
    """A server of gRPC over the engine; the caller gives it a port."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    add_PointsServicer_to_server(_Points(engine), server)  # type: ignore[no-untyped-call]
    add_CollectionsServicer_to_server(_Collections(engine), server)  # type: ignore[no-untyped-call]
    add_QdrantServicer_to_server(_Root(), server)  # type: ignore[no-untyped-call]
    return server


async def _guarded(engine: Engine, context: Any, name: str, collection: str, body: Any) -> Any:
    """Run a request of gRPC, or fail the way a server does."""
    call, fault = engine.note(name, collection, body)
    if fault is Fault.UNAVAILABLE or fault is Fault.RESET:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the shard is recovering")
    if fault is Fault.BUSY:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests", (("retry-after", "0"),))
    if fault is Fault.HALF and call.is_write:
        engine.run_half(call)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset by peer")
    try:
        result = engine.run(call)
    except ValueError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"Wrong input: {error}"[:500])
    except KeyError as error:
        await context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: {error}")
    if fault in (Fault.LOST, Fault.HALF):
        await context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset by peer")
    if fault is Fault.LATE:
        await asyncio.sleep(LATE_SECONDS)
    return result


class _Root(QdrantServicer):
    async def HealthCheck(self, request: Any, context: Any) -> Any:
        return messages.HealthCheckReply(title="qdrant - vector search engine", version=VERSION)


class _Collections(CollectionsServicer):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def CollectionExists(self, request: Any, context: Any) -> Any:
        found = await _guarded(self._engine, context, "exists", request.collection_name, None)
        return messages.CollectionExistsResponse(result=messages.CollectionExists(exists=found.exists))

    async def Create(self, request: Any, context: Any) -> Any:
        vectors = GrpcToRest.convert_vectors_config(request.vectors_config)
        sparse = request.sparse_vectors_config.map
        body = models.CreateCollection(
            vectors=vectors or {},
            sparse_vectors={name: GrpcToRest.convert_sparse_vector_params(item) for name, item in sparse.items()},
            shard_number=_optional(request, "shard_number"),
            replication_factor=_optional(request, "replication_factor"),
            write_consistency_factor=_optional(request, "write_consistency_factor"),
            hnsw_config=GrpcToRest.convert_hnsw_config_diff(request.hnsw_config),
        )
        return messages.CollectionOperationResponse(
            result=await _guarded(self._engine, context, "create", request.collection_name, body)
        )

    async def Get(self, request: Any, context: Any) -> Any:
        info = await _guarded(self._engine, context, "info", request.collection_name, None)
        return messages.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(info))


class _Points(PointsServicer):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def CreateFieldIndex(self, request: Any, context: Any) -> Any:
        schema = GrpcToRest.convert_payload_schema_params(request.field_index_params)
        body = models.CreateFieldIndex(field_name=request.field_name, field_schema=schema)
        result = await _guarded(self._engine, context, "index", request.collection_name, body)
        return messages.PointsOperationResponse(result=RestToGrpc.convert_update_result(result))

    async def CreateVectorName(self, request: Any, context: Any) -> Any:
        config = request.dense_config
        body = models.DenseVectorNameConfig(
            dense=models.DenseVectorConfig(
                size=config.size,
                distance=GrpcToRest.convert_distance(config.distance),
                multivector_config=GrpcToRest.convert_multivector_config(config.multivector_config)
                if config.HasField("multivector_config")
                else None,
            )
        )
        result = await _guarded(
            self._engine, context, "vector_name", request.collection_name, (request.vector_name, body)
        )
        return messages.PointsOperationResponse(result=RestToGrpc.convert_update_result(result))

    async def Get(self, request: Any, context: Any) -> Any:
        body = models.PointRequest(
            ids=[GrpcToRest.convert_point_id(point) for point in request.ids],
            with_payload=GrpcToRest.convert_with_payload_selector(request.with_payload),
            with_vector=GrpcToRest.convert_with_vectors_selector(request.with_vectors)
            if request.HasField("with_vectors")
            else False,
        )
        found = await _guarded(self._engine, context, "retrieve", request.collection_name, body)
        return messages.GetResponse(result=[_record(record) for record in found])

    async def Scroll(self, request: Any, context: Any) -> Any:
        body = models.ScrollRequest(
            filter=GrpcToRest.convert_filter(request.filter),
            limit=request.limit,
            offset=GrpcToRest.convert_point_id(request.offset) if request.HasField("offset") else None,
            with_payload=GrpcToRest.convert_with_payload_selector(request.with_payload),
            with_vector=GrpcToRest.convert_with_vectors_selector(request.with_vectors)
            if request.HasField("with_vectors")
            else False,
        )
        found = await _guarded(self._engine, context, "scroll", request.collection_name, body)
        offset = found.next_page_offset
        return messages.ScrollResponse(
            result=[_record(record) for record in found.points],
            next_page_offset=None if offset is None else RestToGrpc.convert_extended_point_id(offset),
        )

    async def QueryBatch(self, request: Any, context: Any) -> Any:
        searches = [GrpcToRest.convert_query_points(query) for query in request.query_points]
        body = models.QueryRequestBatch(searches=searches)
        found = await _guarded(self._engine, context, "query", request.collection_name, body)
        return messages.QueryBatchResponse(
            result=[
                messages.BatchResult(
                    result=[RestToGrpc.convert_scored_point(_with_payload(point)) for point in response.points]
                )
                for response in found
            ]
        )

    async def Facet(self, request: Any, context: Any) -> Any:
        body = models.FacetRequest(
            key=request.key, filter=GrpcToRest.convert_filter(request.filter), limit=request.limit
        )
        found = await _guarded(self._engine, context, "facet", request.collection_name, body)
        return messages.FacetResponse(hits=[RestToGrpc.convert_facet_value_hit(hit) for hit in found.hits])

    async def UpdateBatch(self, request: Any, context: Any) -> Any:
        operations = [GrpcToRest.convert_points_update_operation(item) for item in request.operations]
        body = models.UpdateOperations(operations=operations)
        results = await _guarded(self._engine, context, "write", request.collection_name, body)
        return messages.UpdateBatchResponse(result=[RestToGrpc.convert_update_result(result) for result in results])


def _optional(request: Any, name: str) -> Any:
    return getattr(request, name) if request.HasField(name) else None


def _record(record: models.Record) -> Any:
    return RestToGrpc.convert_retrieved_point(_with_payload(record))


def _with_payload(point: Any) -> Any:
    """The converter wants a payload, also where none was asked for."""
    return point if point.payload is not None else point.model_copy(update={"payload": {}})
