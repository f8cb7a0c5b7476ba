"""The requests that are sent: those that make collections, and the content of every other one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from qdrant_client import models

from memory_core import (
    Draft,
    InvalidInputError,
    NewerStoreError,
    NotAStoreError,
    StorageError,
    StoreUnavailableError,
    Where,
    run_sync,
)
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.qdrant.codec import WORDS, named_id
from memory_core.storage.qdrant.schema import META_INDEXES, RECORD_INDEXES
from memory_core.storage.qdrant.searching import CANDIDATES
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout, Server
from memory_core.testing import Ticks
from memory_core.testing.base import texts
from tests.storage.embedders import DIMENSIONS
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.engine import Call, Engine
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import markers, records_collection, settle, wait_for


def bodies(engine: Engine, name: str) -> list[Any]:
    return [call.body for call in engine.calls if call.name == name]


def test_the_records_live_in_a_collection_for_many_owners(loopback: Loopback, connect: Open) -> None:
    connect(layout=Layout(shards=6, replicas=3, write_consistency=2))
    body = loopback.engine.created[records_collection(loopback)]
    assert body.hnsw_config is not None
    assert (body.hnsw_config.m, body.hnsw_config.payload_m) == (0, 16)
    assert (body.shard_number, body.replication_factor, body.write_consistency_factor) == (6, 3, 2)
    assert isinstance(body.vectors, dict)
    vectors, first = body.vectors.values()
    assert first.multivector_config is None
    assert first.hnsw_config is not None
    assert first.hnsw_config.payload_m == 0
    assert (vectors.size, vectors.distance, vectors.datatype) == (DIMENSIONS, "Cosine", "float16")
    assert vectors.multivector_config == models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    assert (body.sparse_vectors or {})[WORDS].modifier == models.Modifier.IDF
    assert isinstance(body.quantization_config, models.ScalarQuantization)
    assert body.quantization_config.scalar.type == models.ScalarType.INT8


def test_every_field_that_is_filtered_or_ordered_by_has_an_index(loopback: Loopback, connect: Open) -> None:
    connect()
    name = records_collection(loopback)
    assert loopback.engine.indexes[name].keys() == RECORD_INDEXES.keys()
    assert loopback.engine.indexes[name]["_owner"].is_tenant is True
    for field, kind in (
        ("_keys", "keyword"),
        ("occurred_at", "datetime"),
        ("author", "keyword"),
        ("importance", "float"),
    ):
        index = loopback.engine.indexes[name][field]
        assert (index.type, index.on_disk, index.enable_hnsw) == (kind, True, False)
    assert loopback.engine.indexes[name]["_owner"].enable_hnsw is None
    assert len(RECORD_INDEXES) < 20


def test_a_request_filters_by_indexed_fields_only(loopback: Loopback, connect: Open) -> None:
    ann = connect().bind(user="ann", session="s")
    run_sync(ann.add_many, [Draft("tea", source_key="k", tags=("t",)), Draft("tea", author="Ann", collection="a/b")])
    where = Where(
        kinds=("note",), tiers=("raw",), tags_any=("t",), tags_all=("t",), author="x", agent="x", collection="c",
        under="a", emotion="x", min_importance=0.1, min_confidence=0.1, since=run_sync(ann.list).records[0].created_at,
        states=("archived",), data={"a": 1}, source_keys=("k",),
    )  # fmt: skip
    for order in ("newest", "importance", "accessed"):
        run_sync(ann.list, order=order, where=where)
    run_sync(ann.search, "tea", where=where)
    run_sync(ann.list, touch=True)
    run_sync(ann.delete_where, Where())
    run_sync(ann.erase)
    named: set[str] = set()
    for call in loopback.engine.calls:
        if hasattr(call.body, "model_dump"):
            collect_keys(call.body.model_dump(exclude_none=True), named)
    assert named
    assert named <= RECORD_INDEXES.keys() | META_INDEXES.keys()


def collect_keys(body: Any, into: set[str]) -> None:
    """The fields that conditions and orders name, anywhere in a body."""
    if isinstance(body, list):
        for item in body:
            collect_keys(item, into)
    elif isinstance(body, dict):
        if "key" in body and ({"match", "range", "direction"} & body.keys()):
            into.add(body["key"])
        if "is_empty" in body and isinstance(body["is_empty"], dict):
            into.add(body["is_empty"]["key"])
        for name, item in body.items():
            if name not in ("payload", "points"):
                collect_keys(item, into)


def test_a_search_asks_for_enough_candidates_rescored_and_weighed_by_owner(loopback: Loopback, connect: Open) -> None:
    ann = connect().bind(user="ann")
    run_sync(ann.add, "tea at noon")
    loopback.engine.calls.clear()
    run_sync(ann.search, "tea", limit=5)
    (batch,) = [body for body in bodies(loopback.engine, "query") if len(body.searches) == 4]
    words, meaning, newest, epoch = batch.searches
    assert epoch.limit == 1
    assert [search.limit for search in (words, meaning, newest)] == [CANDIDATES] * 3
    assert meaning.params.quantization.rescore is True
    (corpus,) = words.params.idf.corpus.must
    assert (corpus.key, corpus.match.value) == ("_owner", "0:7:defaultann")
    for search in (words, meaning, newest):
        assert search.filter.must[0].key == "_owner"


@pytest.mark.parametrize(("replicas", "write_consistency"), [(2, 2), (3, 3), (3, 4), (None, 2), (1, 2)])
def test_a_layout_in_which_replicas_would_differ_is_refused(replicas: int | None, write_consistency: int) -> None:
    """While a node is down, a write on all replicas fails and stays on those that are up."""
    with pytest.raises(InvalidInputError, match="must be less than replicas="):
        Layout(replicas=replicas, write_consistency=write_consistency)


def test_one_replica_is_read_and_one_replica_orders_the_writes(loopback: Loopback, connect: Open) -> None:
    ann = connect(layout=Layout(replicas=3)).bind(user="ann")
    loopback.targets.clear()
    run_sync(ann.add_many, [Draft("tea", session="s", source_key="k"), Draft("cake", session="s")])
    assert run_sync(ann.search, "tea")
    assert run_sync(ann.stats).records == 2
    assert {urlsplit(target).query for target in loopback.targets} == {"", "wait=true&ordering=medium"}


def test_tenants_can_have_shards_of_their_own(loopback: Loopback, connect: Open) -> None:
    ann = connect(layout=Layout(tenant_shards=True)).bind(user="ann")
    name = records_collection(loopback)
    assert loopback.engine.created[name].sharding_method == models.ShardingMethod.CUSTOM
    assert loopback.engine.shard_keys[name] == [SHARED_SHARD]
    loopback.engine.calls.clear()
    run_sync(ann.add_many, [Draft("tea", session="s", source_key="k"), Draft("cake", session="s")])
    run_sync(ann.search, "tea")
    run_sync(ann.list, touch=True)
    run_sync(ann.delete_where, Where())
    wanted = models.ShardKeyWithFallback(target="7:defaultann", fallback=SHARED_SHARD)
    mine = [call for call in loopback.engine.calls if call.collection == name and not is_anybodys(call)]
    assert mine
    for call in mine:
        keys = shard_keys(call)[:-1] if call.name == "query" else shard_keys(call)  # the last one asks for the epoch
        assert all(key == wanted for key in keys), call


def test_work_on_all_tenants_names_their_shards(loopback: Loopback, connect: Open, clock: Ticks) -> None:
    memory = connect(layout=Layout(tenant_shards=True), embedder=HashingEmbedder(dimensions=64))
    handles = [memory.bind(user=user) for user in ("ann", "bob")]
    for handle in handles:
        run_sync(handle.add, "tea", embed="later")
        run_sync(handle.delete, run_sync(handle.add, "cake").id)
    settle(loopback)
    assert run_sync(memory.reembed, HashingEmbedder(dimensions=96)) == len(handles)
    assert markers(loopback)
    clock.advance(hours=1)
    connect(layout=Layout(tenant_shards=True), embedder=HashingEmbedder(dimensions=96))  # sweeps at first
    wait_for(lambda: not markers(loopback))
    assert [texts(run_sync(handle.search, "tea")) for handle in handles] == [["tea"], ["tea"]]


def is_anybodys(call: Call) -> bool:
    """True if it is the background looking for work, whoever's it is."""
    return call.name == "retrieve" or (call.name in ("query", "scroll") and "key='_owner'" not in repr(call.body))


def shard_keys(call: Call) -> list[Any]:
    if call.name == "query":
        return [search.shard_key for search in call.body.searches]
    if call.name != "write":
        return [call.body.shard_key]
    return [next(iter(vars(operation).values())).shard_key for operation in call.body.operations]


def test_a_collection_that_is_laid_out_differently_is_refused(loopback: Loopback, connect: Open) -> None:
    connect(layout=Layout(replicas=2))
    connect(layout=Layout())
    with pytest.raises(InvalidInputError, match="replicas=2, not 3; change the collection, or omit"):
        connect(layout=Layout(replicas=3))
    with pytest.raises(InvalidInputError, match="tenant_shards=False, not True"):
        connect(layout=Layout(tenant_shards=True))


def test_a_store_of_a_newer_version_is_refused_and_left_alone(loopback: Loopback, connect: Open) -> None:
    run_sync(connect().bind(user="ann").add, "tea")
    meta = "memory-core-meta"

    def from_the_future() -> None:
        loopback.engine.client.set_payload(
            meta, {"format": 4}, models.Filter(must=[models.HasIdCondition(has_id=[named_id("store")])])
        )
        loopback.engine.calls.clear()

    loopback.on_loop(from_the_future)
    with pytest.raises(
        NewerStoreError, match=r"newer version .*\(format 4, this version knows 3\); upgrade memory-core"
    ):
        connect()
    assert not [call for call in loopback.engine.calls if call.is_write]


def test_a_store_of_a_development_version_is_refused_and_left_alone(loopback: Loopback, connect: Open) -> None:
    run_sync(connect().bind(user="ann").add, "tea")

    def from_before() -> None:
        store = models.Filter(must=[models.HasIdCondition(has_id=[named_id("store")])])
        loopback.engine.client.set_payload("memory-core-meta", {"format": 2}, store)
        loopback.engine.calls.clear()

    loopback.on_loop(from_before)
    with pytest.raises(NotAStoreError, match=r"development version.*move it to a file with that version"):
        connect()
    assert not [call for call in loopback.engine.calls if call.is_write]


def test_a_collection_of_another_program_is_left_alone(loopback: Loopback, connect: Open) -> None:
    name = "memory-core"

    def make() -> None:
        loopback.engine._create(name, models.CreateCollection(vectors={}, sparse_vectors={}))

    loopback.on_loop(make)
    with pytest.raises(NotAStoreError, match="another program"):
        connect()
    assert name not in loopback.engine.indexes


def test_an_older_collection_gets_the_indexes_it_lacks(loopback: Loopback, connect: Open) -> None:
    connect()
    indexes = loopback.engine.indexes[records_collection(loopback)]
    del indexes["author"], indexes["_terms"]
    connect()
    assert indexes.keys() == RECORD_INDEXES.keys()


def test_a_server_that_ignores_conditions_on_writes_is_refused(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = loopback.engine._write

    def forgetful(collection: str, body: models.UpdateOperations) -> Any:
        for operation in body.operations:
            if isinstance(operation, models.UpsertOperation):
                operation.upsert.update_mode = operation.upsert.update_filter = None
        return run(collection, body)

    monkeypatch.setattr(loopback.engine, "_write", forgetful)
    with pytest.raises(StorageError, match="ignores update_mode and update_filter"):
        connect()


def test_something_else_at_the_address_is_refused() -> None:
    import http.server
    import threading

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"title": "something", "version": "none of your business"}')

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.HTTPServer(("127.0.0.2", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        from memory_core import Memory
        from memory_core.storage.qdrant.store import QdrantStore

        memory = Memory(QdrantStore(Server(url=f"http://127.0.0.2:{server.server_port}"), embedder=None))
        with pytest.raises(StorageError, match="which is not a version of Qdrant"):
            run_sync(memory.open)
        server.shutdown()


def test_a_refused_key_is_said_to_be_one(loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = loopback._answer

    async def refuse(method: str, path: str, body: bytes) -> tuple[int, bytes, str]:
        return (await answer(method, path, body)) if path == "/" else (403, b"{}", "")

    monkeypatch.setattr(loopback, "_answer", refuse)
    with pytest.raises(StoreUnavailableError, match="refuses the API key; set QDRANT_API_KEY"):
        connect()
