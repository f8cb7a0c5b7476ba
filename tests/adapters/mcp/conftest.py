from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory
from memory_core.embedding.hashing import HashingEmbedder

sys.path.insert(0, str(Path(__file__).parent))  # tests are no package, and they share `calling`


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
        yield memory


@pytest.fixture
async def bea(tmp_path: Path) -> AsyncIterator[BoundMemory]:
    """A handle on a memory with the default embedder, which takes a second to load."""
    async with Memory(tmp_path / "default.db") as memory:
        yield memory.bind(app="demo", user="bea")


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="ann")
