"""Private and shared memories read together: the tests of `tests/core`, on a Qdrant server."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from memory_core import Memory, MiniLmEmbedder
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from tests.core import test_spaces, test_spaces_generated
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import Loopback

globals().update(
    {
        name: test
        for module in (test_spaces, test_spaces_generated)
        for name, test in vars(module).items()
        if name.startswith("test_") or name in ("ann", "team", "memory_of_two_teams")
    }
)


@pytest.fixture
def new_memory(real_engine: EdgeEngine, real_loopback: Loopback) -> Memory:
    real_loopback.on_loop(real_engine.clear)
    return Memory(QdrantStore(Server(url=real_loopback.url, timeout_seconds=60), embedder=MiniLmEmbedder()))


@pytest.fixture
async def memory(new_memory: Memory) -> AsyncGenerator[Memory]:
    async with new_memory as opened:
        yield opened
