"""A store over a file, with vectors and a clock in the test's hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory
from memory_core.testing import Ticks
from memory_langchain import MemoryStore
from tests.storage.embedders import WordEmbedder


@pytest.fixture
def clock() -> Ticks:
    return Ticks()


@pytest.fixture
def memory(tmp_path: Path, clock: Ticks) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=WordEmbedder(), clock=clock) as memory:
        yield memory


@pytest.fixture
def words() -> Iterator[BoundMemory]:
    """A memory without an embedder."""
    with Memory(":memory:", embedder=None) as memory:
        yield memory.bind(app="demo", user="ann")


@pytest.fixture
def store(ann: BoundMemory) -> MemoryStore:
    return MemoryStore(ann)
