"""The behaviour that only a real server shows; skipped unless the environment names one.

`QDRANT_URL` is the address of a server (with gRPC at port 6334), `QDRANT_CLUSTER_URLS` the addresses of the nodes of a
cluster, with commas. Each promise of the contract is tested once, with its first parameters; `TORTURE=1` adds
the others.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from qdrant_client import QdrantClient, models

from memory_core import Draft, Memory, Where, run_sync
from memory_core.storage.qdrant.schema import meta_name
from memory_core.storage.qdrant.settings import Layout, Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import ReembeddingContract, Ticks
from memory_core.testing.base import MakeMemory, everything, texts
from memory_core.transfer.copying import copy_memory
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.emptied import client_of, drop, emptied_collection
from tests.storage.qdrant.test_contract import OnAServer
from tests.storage.qdrant.test_copying import live, state
from tests.storage.sample import Sample

URL = os.environ.get("QDRANT_URL", "")
NODES = [url for url in os.environ.get("QDRANT_CLUSTER_URLS", "").split(",") if url]
needs_server = pytest.mark.skipif(not URL, reason="needs a Qdrant server; set QDRANT_URL to its address")
needs_cluster = pytest.mark.skipif(len(NODES) < 2, reason="needs a cluster; set QDRANT_CLUSTER_URLS to its nodes")
ONE = Server(url=URL or None, timeout_seconds=60)
SPREAD = Layout(shards=6, replicas=2)

_made: list[str] = []
"""Names of the collections of the present test."""


def new_name(kind: str) -> str:
    _made.append(f"{kind}-{uuid.uuid4().hex[:8]}")
    return _made[-1]


@pytest.fixture(autouse=True)
def drop_collections() -> Iterator[None]:
    yield
    if _made:
        drop(URL or NODES[0], *_made)
        _made.clear()


def opened(server: Server, name: str, clock: Any = None, layout: Layout | None = None) -> Memory:
    """A memory in the collections of that name."""
    clocks: dict[str, Any] = {} if clock is None else {"clock": clock}
    return Memory(QdrantStore(server, embedder=WordEmbedder(), collection=name, layout=layout, **clocks), **clocks)


class OnOneCollection(Sample, OnAServer, ReembeddingContract):
    """The contract on one store for all tests of a class, which is emptied before each of them."""

    server: ClassVar[Server]
    layout: ClassVar[Layout | None] = None

    @pytest.fixture(scope="class")
    @classmethod
    def emptied(cls) -> Iterator[Callable[[], str]]:
        with emptied_collection(str(cls.server.url)) as emptied:
            yield emptied

    @pytest.fixture
    def make_memory(self, emptied: Callable[[], str]) -> MakeMemory:
        name = emptied()
        return lambda clock: opened(self.server, name, clock, self.layout)


@needs_server
class TestContractOverHttp(OnOneCollection):
    server = ONE


@needs_server
class TestContractOverGrpc(OnOneCollection):
    server = replace(ONE, prefer_grpc=True)


@needs_cluster
class TestContractOnACluster(OnOneCollection):
    server = Server(url=NODES[0] if NODES else None, timeout_seconds=60)
    layout = SPREAD


@needs_cluster
def test_every_node_of_a_cluster_reads_what_another_one_wrote() -> None:
    name = new_name("test")
    for n, url in enumerate(NODES):
        with opened(Server(url=url, timeout_seconds=60), name, layout=SPREAD) as memory:
            run_sync(memory.bind(user="ann").add, Draft(f"tea {n}", source_key=str(n)))
            assert len(everything(memory.bind(user="ann"))) == n + 1


@needs_server
def test_memories_move_to_a_server_and_back(tmp_path: Path) -> None:
    clock = Ticks()
    with (
        Memory(tmp_path / "a.db", embedder=WordEmbedder(), clock=clock) as source,
        opened(ONE, new_name("test"), clock) as server,
    ):
        live(source, clock)
        run_sync(copy_memory, source, server)
        with Memory(tmp_path / "b.db", embedder=WordEmbedder(), clock=clock) as back:
            run_sync(copy_memory, server, back)
            assert state(source) == state(server) == state(back)


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    with client_of(URL) as made:
        yield made


@needs_server
def test_a_snapshot_brings_everything_back(client: QdrantClient) -> None:
    """The page on Qdrant says to take one of both collections."""
    name = new_name("test")
    with opened(ONE, name) as memory:
        run_sync(memory.bind(user="ann").add_many, [Draft("tea", source_key="k"), "coffee"])
    taken = {one: client.create_snapshot(one, wait=True) for one in (meta_name(name), name)}
    with opened(ONE, name) as memory:
        run_sync(memory.bind(user="ann").add, "later")
    for one, snapshot in taken.items():
        assert snapshot is not None
        client.recover_snapshot(one, f"{URL}/collections/{one}/snapshots/{snapshot.name}", wait=True)
    with opened(ONE, name) as memory:
        ann = memory.bind(user="ann")
        assert sorted(texts(everything(ann))) == ["coffee", "tea"]
        again = run_sync(ann.add, Draft("tea", source_key="k"))
        assert again in everything(ann)
        assert texts(run_sync(ann.search, "tea", limit=1)) == ["tea"]


@needs_server
def test_a_store_works_in_strict_mode(client: QdrantClient) -> None:
    """With what Qdrant Cloud sets: no condition on a field without an index."""
    name = new_name("test")
    with opened(ONE, name) as memory:
        run_sync(memory.open)
        strict = models.StrictModeConfig(
            enabled=True,
            unindexed_filtering_retrieve=False,
            unindexed_filtering_update=False,
            max_payload_index_count=100,
        )
        for one in (name, meta_name(name)):
            client.update_collection(one, strict_mode_config=strict)
        ann = memory.bind(user="ann")
        old = run_sync(ann.add, Draft("Ann lives in Oslo", session="s", source_key="k", role="user", tags=("t",)))
        run_sync(ann.supersede, old.id, "Ann lives in Rome")
        assert texts(run_sync(ann.search, "Where does Ann live?", floor=False)) == ["Ann lives in Rome"]
        run_sync(ann.list, where=Where(tags_all=("t",), min_importance=0.1, as_of=old.created_at), touch=True)
        run_sync(memory.operator().check)
        run_sync(memory.operator().vacuum)
        run_sync(ann.delete_where, Where(source_keys=("k",)))
        run_sync(ann.erase)
        assert everything(ann) == []
