"""The schema of the collections: creating them, and checking existing ones.

| collection | content |
|---|---|
| `NAME` | the records, markers of deleted ones, epochs of owners |
| `NAME-meta` | the description of the store, and the positions of a mirror; no texts |

Owners share the records' collection: the graph is built separately for each owner (`m=0`, `payload_m`), for no other
field (`enable_hnsw`), and the owner's key is the tenant index, with which a server stores an owner's points together.

Every step can be repeated, and is checked on its own: a process that dies in between is completed by the next `open`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from memory_core.errors import FingerprintError, InvalidInputError, NotAStoreError, StorageError
from memory_core.models import Fingerprint
from memory_core.storage.qdrant.client import AsyncQdrantClient, models
from memory_core.storage.qdrant.connection import Connection
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout
from memory_core.storage.qdrant.vectors import WORDS, head_of
from memory_core.storage.qdrant.where import RANGED, RATED

FORMAT: Final = 2
"""Format of the payload and the collections; a store with a newer format is not changed."""
PAYLOAD_M: Final = 16
"""Number of links of a point in its owner's graph."""
STEP_SECONDS: Final = 60
"""How long a server may take to answer a request that creates something; it goes on meanwhile."""

_KEYWORD: Final = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, on_disk=True, enable_hnsw=False)
_MOMENT: Final = models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME, on_disk=True, enable_hnsw=False)
_FLOAT: Final = models.FloatIndexParams(type=models.FloatIndexType.FLOAT, on_disk=True, enable_hnsw=False)
_INTEGER: Final = models.IntegerIndexParams(
    type=models.IntegerIndexType.INTEGER, lookup=True, range=True, on_disk=True, enable_hnsw=False
)

RECORD_INDEXES: Final[Mapping[str, models.PayloadSchemaParams]] = {
    "_owner": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, on_disk=True),
    "_keys": _KEYWORD,
    "_write": _KEYWORD,
    "author": _KEYWORD,
    **dict.fromkeys(RANGED, _MOMENT),
    "_seen_at": _MOMENT,
    **dict.fromkeys(RATED, _FLOAT),
    "_seq": _INTEGER,
    "_before": _INTEGER,
    "_analysis": _INTEGER,
    "_terms": models.TextIndexParams(
        type=models.TextIndexType.TEXT,
        tokenizer=models.TokenizerType.WHITESPACE,
        lowercase=False,
        on_disk=True,
        enable_hnsw=False,
    ),
}
"""All fields used by filters and orders, so that the store also works where unindexed filters are forbidden."""

META_INDEXES: Final[Mapping[str, models.PayloadSchemaParams]] = {"kind": _KEYWORD, "_write": _KEYWORD}

Make = Callable[[AsyncQdrantClient], Awaitable[object]]


def meta_name(name: str) -> str:
    """The name of the collection that describes the store."""
    return f"{name}-meta"


async def ensure_meta(connection: Connection, name: str, layout: Layout) -> None:
    """Create the collection that describes the store unless it exists.

    Raises:
        NotAStoreError: There is a store of format 1, which had other collections.
    """
    if await connection.call(lambda client: client.collection_exists(f"{name}-ledger")):
        raise NotAStoreError(
            f"{name!r} is a store of a development version, which this one does not read; move it to a file with that "
            "version, or give another collection name"
        )

    async def make(client: AsyncQdrantClient) -> None:
        await client.create_collection(
            meta_name(name),
            vectors_config={},
            sparse_vectors_config={WORDS: models.SparseVectorParams()},  # servers want some; its points have none
            timeout=STEP_SECONDS,
            **_distribution(layout, tenants=False),
        )

    await _ensure(connection, meta_name(name), make)
    await _ensure_indexes(connection, meta_name(name), META_INDEXES)


async def ensure_records(
    connection: Connection, name: str, layout: Layout, fingerprint: Fingerprint | None, vector: str | None
) -> None:
    """Create the records' collection unless it exists, and add whatever it lacks: indexes, shard key, vector.

    Raises:
        InvalidInputError: It exists with another layout.
        NotAStoreError: Another program made it.
        FingerprintError: Its vectors have another length.
    """
    vectors: dict[str, models.VectorParams] = {}
    if fingerprint is not None and vector is not None:
        vectors[vector] = _vectors(fingerprint.dimensions)
        vectors[head_of(vector)] = models.VectorParams(
            size=fingerprint.dimensions,
            distance=models.Distance.COSINE,
            datatype=models.Datatype.FLOAT16,
            hnsw_config=_NO_GRAPH,
            on_disk=True,
        )

    async def make(client: AsyncQdrantClient) -> None:
        await client.create_collection(
            name,
            vectors_config=vectors,
            sparse_vectors_config={
                WORDS: models.SparseVectorParams(
                    modifier=models.Modifier.IDF, index=models.SparseIndexParams(on_disk=True)
                )
            },
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=PAYLOAD_M),
            quantization_config=_quantisation() if layout.quantised else None,
            on_disk_payload=layout.on_disk_payload,
            timeout=STEP_SECONDS,
            **_distribution(layout, tenants=layout.tenant_shards),
        )

    await _ensure(connection, name, make)
    info = await connection.call(lambda client: client.get_collection(name))
    if WORDS not in (info.config.params.sparse_vectors or {}):
        raise NotAStoreError(f"collection {name!r} was made by another program; give another collection name")
    _check_layout(name, info.config.params, layout)
    if layout.tenant_shards:
        await _ensure_shard_key(connection, name)
    if fingerprint is not None and vector is not None:
        await ensure_vector(connection, name, vector, fingerprint.dimensions)
    await _ensure_indexes(connection, name, RECORD_INDEXES)


async def ensure_vector(connection: Connection, name: str, vector: str, dimensions: int) -> None:
    """Add a named vector, with that of first pieces, unless the collection has them.

    Raises:
        FingerprintError: It has another length.
        StorageError: The server cannot add one; releases before 1.18 cannot.
    """
    info = await connection.call(lambda client: client.get_collection(name))
    existing = info.config.params.vectors
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


async def _ensure(connection: Connection, name: str, make: Make) -> None:
    """Create a collection unless it exists."""
    if await connection.call(lambda client: client.collection_exists(name)):
        return

    async def attempt(client: AsyncQdrantClient) -> None:
        await make(client)

    try:
        await connection.call(attempt)
    except StorageError:
        if not await connection.call(lambda client: client.collection_exists(name)):
            raise  # else another process, or an earlier attempt of this one, has created it


async def _ensure_shard_key(connection: Connection, name: str) -> None:
    """Create the shard that owners share, unless a shard key exists already."""

    async def keys(client: AsyncQdrantClient) -> set[str]:
        found = await client.list_shard_keys(name)
        return {str(description.key) for description in found.shard_keys or ()}

    if SHARED_SHARD in await connection.call(keys):
        return
    try:
        await connection.call(lambda client: client.create_shard_key(name, SHARED_SHARD, timeout=STEP_SECONDS))
    except StorageError:
        if SHARED_SHARD not in await connection.call(keys):
            raise


async def _ensure_indexes(connection: Connection, name: str, indexes: Mapping[str, models.PayloadSchemaParams]) -> None:
    if connection.server.is_local:
        return  # the local mode has no indexes, and would warn
    info = await connection.call(lambda client: client.get_collection(name))
    for field, schema in indexes.items():
        if field not in info.payload_schema:
            await connection.call(
                lambda client, field=field, schema=schema: client.create_payload_index(
                    name, field_name=field, field_schema=schema, wait=True, timeout=STEP_SECONDS
                )
            )


_NO_GRAPH: Final = models.HnswConfigDiff(m=0, payload_m=0)
"""First pieces are compared with candidates that are known by id, so they need no graph."""
_MAX_SIM: Final = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)


def _vectors(dimensions: int) -> models.VectorParams:
    """One row for each piece of a text, so that a record is one point; the best row counts (`docs/retrieval.md`)."""
    return models.VectorParams(
        size=dimensions,
        distance=models.Distance.COSINE,
        multivector_config=_MAX_SIM,
        datatype=models.Datatype.FLOAT16,
        on_disk=True,
    )


def _quantisation() -> models.ScalarQuantization:
    """int8 in memory; the outermost 1 % of values is clipped, which improves the precision of the others."""
    return models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    )


def _distribution(layout: Layout, *, tenants: bool) -> dict[str, Any]:
    """The arguments of `create_collection` that distribute it over a cluster."""
    return {
        "shard_number": layout.shards,
        "sharding_method": models.ShardingMethod.CUSTOM if tenants else None,
        "replication_factor": layout.replicas,
        "write_consistency_factor": layout.write_consistency,
    }


def _check_layout(name: str, existing: models.CollectionParams, layout: Layout) -> None:
    asked = {
        "shards": (layout.shards, existing.shard_number),
        "replicas": (layout.replicas, existing.replication_factor),
        "write_consistency": (layout.write_consistency, existing.write_consistency_factor),
        "tenant_shards": (
            layout.tenant_shards or None,
            existing.sharding_method == models.ShardingMethod.CUSTOM,
        ),
    }
    for option, (wanted, found) in asked.items():
        if wanted is not None and wanted != found:
            raise InvalidInputError(
                f"collection {name!r} has {option}={found!r}, not {wanted!r}; change the collection, or omit the "
                "option to accept its value"
            )
