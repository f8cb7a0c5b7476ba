"""A memory in a file of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory


@pytest.fixture
def open_handle(memory: Memory) -> BoundMemory:
    """A handle that leaves the user to the framework."""
    return memory.bind(app="demo")


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="ann")
