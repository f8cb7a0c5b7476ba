"""The contract of every store, kept by the Qdrant store over every way to reach one.

Each promise is tested once over HTTP, where the server is Qdrant's own engine; over gRPC, in local mode, and without
vectors, those parts are tested that look different there. `make torture` runs the rest.
"""

from __future__ import annotations

import uuid

import pytest

from memory_core import BoundMemory, Memory, run_sync
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.supplied import Clock
from memory_core.testing import ReembeddingContract, ReopeningContract, StoreContract, Ticks
from memory_core.testing.base import MakeEmbedder, MakeMemory, everything
from memory_core.testing.conditions import ConditionContract
from memory_core.testing.listings import ListingContract
from memory_core.testing.records import RecordContract
from memory_core.testing.searches import SearchContract
from memory_core.testing.vectors import VectorContract
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import HOST, Loopback
from tests.storage.sample import Sample


@pytest.mark.uncovered
class TestInMemoryWithVectors(Sample, StoreContract):
    """Local mode has conditions, orders and vectors of its own."""

    parts = (RecordContract, ConditionContract, ListingContract, SearchContract, VectorContract)

    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder:
        return WordEmbedder

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(QdrantStore(":memory:", embedder=WordEmbedder(), clock=clock), clock=clock)


@pytest.mark.uncovered
class TestInMemoryOfWords(Sample, StoreContract):
    parts = (RecordContract, SearchContract)

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(QdrantStore(":memory:", embedder=None, clock=clock), clock=clock)


class OnAServer(StoreContract, ReopeningContract):
    """The contract over a network, where nobody can see what is left in the server's files."""

    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder:
        return WordEmbedder

    def test_erase_takes_everything_in_reach_and_says_how_much(self, ann: BoundMemory, clock: Ticks) -> None:
        run_sync(ann.add, "a")
        receipt = run_sync(ann.erase)
        assert (receipt.records, receipt.files_clean) == (1, False)
        assert everything(ann) == []


def on_server(server: Server, clock: Clock, name: str = "contract") -> Memory:
    return Memory(QdrantStore(server, embedder=WordEmbedder(), clock=clock, collection=name), clock=clock)


@pytest.fixture
def empty(real_engine: EdgeEngine, real_loopback: Loopback) -> Loopback:
    real_loopback.on_loop(real_engine.clear)
    return real_loopback


@pytest.mark.slow
class TestOverHttp(Sample, OnAServer):
    @pytest.fixture
    def make_memory(self, empty: Loopback) -> MakeMemory:
        return lambda clock: on_server(Server(url=empty.url), clock)


@pytest.mark.slow
class TestOverGrpc(Sample, OnAServer):
    parts = (RecordContract, SearchContract)

    @pytest.fixture
    def make_memory(self, empty: Loopback) -> MakeMemory:
        server = Server(host=HOST, port=empty.http_port, grpc_port=empty.grpc_port, prefer_grpc=True)
        return lambda clock: on_server(server, clock)


class TestAnotherEmbedder(ReembeddingContract):
    @pytest.fixture
    def make_memory(self, empty: Loopback) -> MakeMemory:
        name = f"reembedding-{uuid.uuid4().hex[:8]}"
        return lambda clock: on_server(Server(url=empty.url), clock, name)
