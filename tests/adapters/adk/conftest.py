from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_adk import MemoryService
from memory_core import Memory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory


@pytest.fixture
def service(memory: Memory) -> MemoryService:
    return MemoryService(memory)
