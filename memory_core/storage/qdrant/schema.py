"""The schema of the collections: creating them, and checking existing ones.

| collection | content |
|---|---|
| `NAME` | the records, markers of deleted ones, epochs of owners |
| `NAME-meta` | the description of the store; no texts |

Owners share the records' collection: the graph is built separately for each owner (`m=0`, `payload_m`), for no other
field (`enable_hnsw`), and the owner's key is the tenant index, with which a server stores an owner's points together.

Every step can be repeated, and is checked on its own: a process that dies in between is completed by the next `open`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memory_core.errors import FingerprintError, InvalidInputError, NotAStoreError, StorageError
from memory_core.models import Fingerprint
from memory_core.storage.qdrant.client import AsyncQdrantClient, models
from memory_core.storage.qdrant.codec import WORDS, head_of
from memory_core.storage.qdrant.connection import Connection, Request
from memory_core.storage.qdrant.meta import vector_name
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout
from memory_core.storage.qdrant.where import RANGED, RATED

PAYLOAD_M: Final = 16
"""Number of links of a point in its owner's graph."""
STEP_SECONDS: Final = 60
"""The time that a server may take to answer a request that creates something; it goes on meanwhile."""

_NO_GRAPH: Final[dict[str, Any]] = {"on_disk": True, "enable_hnsw": False}
_KEYWORD: Final = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, **_NO_GRAPH)
_MOMENT: Final = models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME, **_NO_GRAPH)
_FLOAT: Final = models.FloatIndexParams(type=models.FloatIndexType.FLOAT, **_NO_GRAPH)
_INTEGER: Final = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=True, **_NO_GRAPH)
_WHITESPACE: Final = models.TokenizerType.WHITESPACE

RECORD_INDEXES: Final[Mapping[str, models.PayloadSchemaParams]] = {
    "_owner": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, on_disk=True),
    **dict.fromkeys(("_keys", "_write", "author"), _KEYWORD),
    **dict.fromkeys((*RANGED, "_seen_at"), _MOMENT),
    **dict.fromkeys(RATED, _FLOAT),
    **dict.fromkeys(("_seq", "_before", "_analysis"), _INTEGER),
    "_terms": models.TextIndexParams(
        type=models.TextIndexType.TEXT, tokenizer=_WHITESPACE, lowercase=False, **_NO_GRAPH
    ),
}
"""All fields used by filters and orders, so that the store also works where unindexed filters are forbidden."""
META_INDEXES: Final[Mapping[str, models.PayloadSchemaParams]] = {"_write": _KEYWORD}


def meta_name(name: str) -> str:
    """The name of the collection that describes the store."""
    return f"{name}-meta"


async def ensure_meta(connection: Connection, name: str, layout: Layout) -> None:
    """Create the collection that describes the store."""
    words = {WORDS: models.SparseVectorParams()}  # servers want some; its points have none
    await _ensure(connection, meta_name(name), layout, vectors_config={}, sparse_vectors_config=words)
    await _ensure_indexes(connection, meta_name(name), META_INDEXES)


async def ensure_records(connection: Connection, name: str, layout: Layout, fingerprint: Fingerprint | None) -> None:
    """Create the records' collection unless it exists, and add whatever it lacks: indexes, shard key, vector; raises
    as `QdrantStore.open`."""
    words = models.SparseVectorParams(modifier=models.Modifier.IDF, index=models.SparseIndexParams(on_disk=True))
    await _ensure(
        connection,
        name,
        layout,
        vectors_config={} if fingerprint is None else _vectors(fingerprint),
        sparse_vectors_config={WORDS: words},
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=PAYLOAD_M),
        quantization_config=_INT8,
        on_disk_payload=True,
        sharding_method=models.ShardingMethod.CUSTOM if layout.tenant_shards else None,
    )
    params = (await connection.call(lambda client: client.get_collection(name))).config.params
    if WORDS not in (params.sparse_vectors or {}):
        raise NotAStoreError(f"collection {name!r} was made by another program; give another collection name")
    _check_layout(name, params, layout)
    if layout.tenant_shards:
        await _ensure_shard_key(connection, name)
    if fingerprint is not None:
        await ensure_vector(connection, name, fingerprint)
    await _ensure_indexes(connection, name, RECORD_INDEXES)


_INT8: Final = models.ScalarQuantization(
    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
)
"""int8 in memory; the outermost 1 % of values is clipped, which improves the precision of the others."""
_MAX_SIM: Final = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)


def _vectors(fingerprint: Fingerprint) -> dict[str, models.VectorParams]:
    """One row for each piece of a text, so that a record is one point; the best row counts (`docs/retrieval.md`).

    First pieces are compared with candidates that are known by id, so they need no graph.
    """
    vector, no_graph = vector_name(fingerprint), models.HnswConfigDiff(m=0, payload_m=0)
    common: dict[str, Any] = {"size": fingerprint.dimensions, "distance": models.Distance.COSINE, "on_disk": True}
    common["datatype"] = models.Datatype.FLOAT16
    return {
        vector: models.VectorParams(**common, multivector_config=_MAX_SIM),
        head_of(vector): models.VectorParams(**common, hnsw_config=no_graph),
    }


async def ensure_vector(connection: Connection, name: str, fingerprint: Fingerprint) -> None:
    """Add a named vector, with that of first pieces, unless the collection has them. Raises `FingerprintError` if it
    has another length, and `StorageError` if the server cannot add one."""
    vector, dimensions = vector_name(fingerprint), fingerprint.dimensions
    existing = (await connection.call(lambda client: client.get_collection(name))).config.params.vectors
    for one, multiple in ((vector, _MAX_SIM), (head_of(vector), None)):
        found = existing.get(one) if isinstance(existing, dict) else None
        if found is not None and found.size != dimensions:
            raise FingerprintError(f"collection {name!r} has vectors {one!r} of {found.size} dimensions")
        if found is None:
            config = models.DenseVectorConfig(
                size=dimensions,
                distance=models.Distance.COSINE,
                multivector_config=multiple,
                datatype=models.VectorStorageDatatype.FLOAT16,
            )
            named = models.DenseVectorNameConfig(dense=config)
            await connection.call(lambda client, one=one, named=named: client.create_vector_name(name, one, named))


async def _ensure(connection: Connection, name: str, layout: Layout, **made: Any) -> None:  # of `create_collection`
    """Create a collection unless it exists."""
    await _once(
        connection,
        lambda client: client.collection_exists(name),
        lambda client: client.create_collection(
            name,
            timeout=STEP_SECONDS,
            shard_number=layout.shards,
            replication_factor=layout.replicas,
            write_consistency_factor=layout.write_consistency,
            **made,
        ),
    )


async def _ensure_shard_key(connection: Connection, name: str) -> None:
    """Create the shard that owners share, unless a shard key exists already."""

    async def is_there(client: AsyncQdrantClient) -> bool:
        found = await client.list_shard_keys(name)
        return SHARED_SHARD in {str(description.key) for description in found.shard_keys or ()}

    await _once(connection, is_there, lambda client: client.create_shard_key(name, SHARED_SHARD, timeout=STEP_SECONDS))


async def _once(connection: Connection, is_there: Request[bool], make: Request[object]) -> None:
    """Make what is missing, unless another process, or an earlier attempt of this one, makes it first."""
    if await connection.call(is_there):
        return
    try:
        await connection.call(make)
    except StorageError:
        if not await connection.call(is_there):
            raise


async def _ensure_indexes(connection: Connection, name: str, indexes: Mapping[str, models.PayloadSchemaParams]) -> None:
    if connection.server.is_local:
        return  # the local mode has no indexes, and would warn
    there = (await connection.call(lambda client: client.get_collection(name))).payload_schema
    for field in indexes.keys() - there.keys():
        await connection.call(
            lambda client, field=field: client.create_payload_index(
                name, field_name=field, field_schema=indexes[field], wait=True, timeout=STEP_SECONDS
            )
        )


def _check_layout(name: str, existing: models.CollectionParams, layout: Layout) -> None:
    is_custom = existing.sharding_method == models.ShardingMethod.CUSTOM
    asked = {
        "shards": (layout.shards, existing.shard_number),
        "replicas": (layout.replicas, existing.replication_factor),
        "write_consistency": (layout.write_consistency, existing.write_consistency_factor),
        "tenant_shards": (layout.tenant_shards or None, is_custom),
    }
    for option, (wanted, found) in asked.items():
        if wanted is not None and wanted != found:
            raise InvalidInputError(
                f"collection {name!r} has {option}={found!r}, not {wanted!r}; change the collection, or omit the "
                "option to accept its value"
            )
