"""The contract of every store, kept by the Qdrant store over every way to reach one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from memory_core import BoundMemory, Memory, run_sync
from memory_core.protocols import Clock
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import StoreContract, Ticks
from memory_core.testing.base import MakeMemory, everything
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.loopback import HOST, Loopback


@pytest.mark.slow
class TestInMemoryOfWords(StoreContract):
    has_vectors = False

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(QdrantStore(":memory:", embedder=None, clock=clock), clock=clock)


class TestInMemoryWithVectors(StoreContract):
    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(QdrantStore(":memory:", embedder=WordEmbedder(), clock=clock), clock=clock)


class OnAServer(StoreContract):
    """The contract over a network, where nobody can see what is left in the server's files."""

    def test_erase_takes_everything_in_reach_and_says_how_much(self, ann: BoundMemory, clock: Ticks) -> None:
        run_sync(ann.add, "a")
        receipt = run_sync(ann.erase)
        assert (receipt.records, receipt.files_clean) == (1, False)
        assert everything(ann) == []


def on_server(server: Server, clock: Clock, name: str | None = None) -> Memory:
    """A memory in collections of its own."""
    name = name or f"contract-{uuid.uuid4().hex[:8]}"
    return Memory(QdrantStore(server, embedder=WordEmbedder(), clock=clock, collection=name), clock=clock)


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    with Loopback() as server:
        server.engine.keep_calls = False
        yield server


@pytest.mark.slow
class TestOverHttp(OnAServer):
    @pytest.fixture
    def make_memory(self, loopback: Loopback) -> MakeMemory:
        return lambda clock: on_server(Server(url=loopback.url), clock)


@pytest.mark.slow
class TestOverGrpc(OnAServer):
    @pytest.fixture
    def make_memory(self, loopback: Loopback) -> MakeMemory:
        server = Server(host=HOST, port=loopback.http_port, grpc_port=loopback.grpc_port, prefer_grpc=True)
        return lambda clock: on_server(server, clock)


@pytest.mark.skipif("QDRANT_URL" not in os.environ, reason="QDRANT_URL names no server to run on")
class TestOnTheServerOfTheEnvironment(OnAServer):
    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: on_server(Server(), clock)


@pytest.fixture(scope="module")
def edge_loopback() -> Iterator[Loopback]:
    from tests.storage.qdrant.edge_engine import EdgeEngine

    engine = EdgeEngine()
    engine.keep_calls = False
    with Loopback(engine) as server:
        yield server
    engine.close()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("qdrant_edge") is None, reason="qdrant-edge-py, the server's engine, is not installed")
class TestOnTheServersEngine(OnAServer):
    @pytest.fixture
    def make_memory(self, edge_loopback: Loopback) -> MakeMemory:
        edge_loopback.on_loop(edge_loopback.engine.clear)  # to make the collections anew takes it seconds
        return lambda clock: on_server(Server(url=edge_loopback.url), clock, name="contract")
