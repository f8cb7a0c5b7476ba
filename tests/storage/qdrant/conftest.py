"""A loopback server, empty for each test, and memories on it that lose patience soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from memory_core import Embedder, Memory
from memory_core.storage.qdrant.settings import Layout, Patience, Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import Ticks
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import Loopback

QUICK = Patience(attempts=6, first_pause_seconds=0.001, longest_pause_seconds=0.01)
"""Tries as often as by default, without the pauses."""
ONCE = Patience(attempts=1)

Open = Callable[..., Memory]


@pytest.fixture(scope="session")
def _loopback() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture(scope="session")
def real_engine() -> Iterator[EdgeEngine]:
    """The engine of a real server; to make its collections takes seconds, so they are kept."""
    engine = EdgeEngine()
    engine.keep_calls = False
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def real_loopback(real_engine: EdgeEngine) -> Iterator[Loopback]:
    with Loopback(real_engine) as server:
        yield server


@pytest.fixture
def loopback(_loopback: Loopback) -> Loopback:
    _loopback.restore()
    return _loopback


@pytest.fixture(params=["http", "grpc"])
def server(request: pytest.FixtureRequest, loopback: Loopback) -> Server:
    """Its address, for either transport."""
    http = Server(url=loopback.url, timeout_seconds=1)
    return replace(http, prefer_grpc=True, grpc_port=loopback.grpc_port) if request.param == "grpc" else http


@pytest.fixture
def clock() -> Ticks:
    return Ticks()


@pytest.fixture
def connect(loopback: Loopback, clock: Ticks) -> Iterator[Open]:
    """Open memories on the server; they are closed in the end."""
    opened: list[Memory] = []

    def memory(
        server: Server | None = None,
        *,
        embedder: Embedder | None = None,
        patience: Patience = QUICK,
        layout: Layout | None = None,
        words_only: bool = False,
    ) -> Memory:
        store = QdrantStore(
            server or Server(url=loopback.url, timeout_seconds=1),
            embedder=None if words_only else embedder or WordEmbedder(),
            clock=clock,
            patience=patience,
            layout=layout,
        )
        opened.append(Memory(store, clock=clock))
        return opened[-1].__enter__()

    yield memory
    for one in opened:
        one.__exit__(None, None, None)
