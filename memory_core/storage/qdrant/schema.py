"""The schema of the collections: creating them, and checking existing ones.

| collection | content |
|---|---|
| `NAME-ledger` | one description of the store, tombstones, journals of running writes; no vectors |
| `NAME-EMBEDDER-HASH` | the records with the vectors of one embedder; named by the description in the ledger |

Owners share the records' collection: the graph is built separately for each owner (`m=0`, `payload_m`), and the owner's
key is the tenant index, with which a server stores an owner's points together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from memory_core.encoding import encode_json
from memory_core.errors import FingerprintError, InvalidInputError, StorageError
from memory_core.models import Fingerprint
from memory_core.storage.qdrant.client import AsyncQdrantClient, models
from memory_core.storage.qdrant.codec import TEXT, WORDS
from memory_core.storage.qdrant.connection import Connection
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout

FORMAT: Final = 1
"""Format of the payload and the collections; a store with a newer format is not changed."""

PAYLOAD_M: Final = 16
"""Number of links of a point in its owner's graph."""

_KEYWORD: Final = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
_TENANT: Final = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
_MOMENT: Final = models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME)
_PRINCIPAL: Final = models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME, is_principal=True)
_FLOAT: Final = models.FloatIndexParams(type=models.FloatIndexType.FLOAT)
_INTEGER: Final = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER)
_TERMS: Final = models.TextIndexParams(
    type=models.TextIndexType.TEXT, tokenizer=models.TokenizerType.WHITESPACE, lowercase=False, on_disk=True
)

RECORD_INDEXES: Final[Mapping[str, models.PayloadSchemaParams]] = {
    "_owner": _TENANT,
    "id": _KEYWORD,
    "app": _KEYWORD,
    "user": _KEYWORD,
    "agent": _KEYWORD,
    "session": _KEYWORD,
    "collection": _KEYWORD,
    "author": _KEYWORD,
    "role": _KEYWORD,
    "kind": _KEYWORD,
    "tier": _KEYWORD,
    "tags": _KEYWORD,
    "emotion": _KEYWORD,
    "state": _KEYWORD,
    "source_key": _KEYWORD,
    "occurred_at": _PRINCIPAL,
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
    "accessed_at": _MOMENT,
    "valid_from": _MOMENT,
    "valid_to": _MOMENT,
    "links": _KEYWORD,
    "expires_at": _MOMENT,
    "importance": _FLOAT,
    "confidence": _FLOAT,
    "_seen_at": _MOMENT,
    "_seq": _INTEGER,
    "_pieces": _INTEGER,
    "_analysis": _INTEGER,
    "_terms": _TERMS,
    "_data": _KEYWORD,
    "_under": _KEYWORD,
    "_before": _KEYWORD,
    "_pending": _KEYWORD,
    "_born": _KEYWORD,
    "_write": _KEYWORD,
    "access_count": _INTEGER,
    "rev": _INTEGER,
    "version": _INTEGER,
}
"""All fields used by filters and orders, so that the store also works where unindexed filters are forbidden."""

LEDGER_INDEXES: Final[Mapping[str, models.PayloadSchemaParams]] = {
    "kind": _KEYWORD,
    "journal": _KEYWORD,
    "fingerprint": _KEYWORD,
    "state": _KEYWORD,
}


def records_name(name: str, fingerprint: Fingerprint | None) -> str:
    """The name of the collection for the vectors of one embedder."""
    if fingerprint is None:
        return f"{name}-words"
    slug = re.sub(r"[^A-Za-z0-9]+", "-", fingerprint.name).strip("-")[:60]
    digest = sha256(encode_json([fingerprint.name, fingerprint.revision, fingerprint.dimensions]).encode()).hexdigest()
    return f"{name}-{slug}-{digest[:8]}"


def ledger_name(name: str) -> str:
    """The name of the ledger."""
    return f"{name}-ledger"


async def ensure_ledger(connection: Connection, name: str, layout: Layout) -> None:
    """Create the ledger unless it exists."""

    async def make(client: AsyncQdrantClient) -> None:
        await client.create_collection(
            name,
            vectors_config={},
            sparse_vectors_config={
                WORDS: models.SparseVectorParams()
            },  # a collection needs some vectors; its points have none
            **_distribution(layout, tenants=False),
        )

    await _ensure(connection, name, make)
    await _ensure_indexes(connection, name, LEDGER_INDEXES)


async def ensure_records(connection: Connection, name: str, layout: Layout, fingerprint: Fingerprint | None) -> None:
    """Create the records' collection unless it exists, and add missing indexes and vectors.

    Raises:
        InvalidInputError: It exists with another layout.
        FingerprintError: Its vectors have another length.
    """
    dimensions = None if fingerprint is None else fingerprint.dimensions

    async def make(client: AsyncQdrantClient) -> None:
        await client.create_collection(
            name,
            vectors_config={} if dimensions is None else {TEXT: _vectors(dimensions)},
            sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=PAYLOAD_M),
            quantization_config=_quantisation() if layout.quantised else None,
            on_disk_payload=layout.on_disk_payload,
            **_distribution(layout, tenants=layout.tenant_shards),
        )
        if layout.tenant_shards:
            await client.create_shard_key(name, SHARED_SHARD)

    await _ensure(connection, name, make)
    info = await connection.call(lambda client: client.get_collection(name))
    _check_layout(name, info.config.params, layout)
    if dimensions is not None:
        await _ensure_vectors(connection, name, info, dimensions)
    await _ensure_indexes(connection, name, RECORD_INDEXES)


async def _ensure(connection: Connection, name: str, make: Any) -> None:  # (AsyncQdrantClient) -> Awaitable[None]
    if await connection.call(lambda client: client.collection_exists(name)):
        return
    try:
        await connection.call(make)
    except StorageError:
        if not await connection.call(lambda client: client.collection_exists(name)):
            raise  # else another process, or an earlier attempt of this one, has created it


async def _ensure_indexes(connection: Connection, name: str, indexes: Mapping[str, models.PayloadSchemaParams]) -> None:
    if connection.server.is_local:
        return  # the local mode has no indexes, and would warn
    info = await connection.call(lambda client: client.get_collection(name))
    for field, schema in indexes.items():
        if field not in info.payload_schema:
            await connection.call(
                lambda client, field=field, schema=schema: client.create_payload_index(
                    name, field_name=field, field_schema=schema, wait=True
                )
            )


async def _ensure_vectors(connection: Connection, name: str, info: models.CollectionInfo, dimensions: int) -> None:
    """A collection without vectors gets them with the first embedder; its texts are pending already."""
    existing = info.config.params.vectors
    vectors = existing.get(TEXT) if isinstance(existing, dict) else None
    if vectors is None:
        config = models.DenseVectorNameConfig(
            dense=models.DenseVectorConfig(
                size=dimensions,
                distance=models.Distance.COSINE,
                multivector_config=_MAX_SIM,
                datatype=models.VectorStorageDatatype.FLOAT16,
            )
        )
        await connection.call(lambda client: client.create_vector_name(name, TEXT, config))
    elif vectors.size != dimensions:
        raise FingerprintError(
            f"collection {name!r} has vectors of {vectors.size} dimensions, the embedder makes {dimensions}; open it "
            "with the embedder that made them, or copy the records to a new store"
        )


_MAX_SIM: Final = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)


def _vectors(dimensions: int) -> models.VectorParams:
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
