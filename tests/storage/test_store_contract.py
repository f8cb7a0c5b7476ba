"""The contract of every store, kept by the embedded one in each way it can be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import Memory
from memory_core.testing import StoreContract
from memory_core.testing.base import MakeMemory
from tests.storage.embedders import WordEmbedder


class TestFileOfWords(StoreContract):
    has_vectors = False

    @pytest.fixture
    def make_memory(self, tmp_path: Path) -> MakeMemory:
        return lambda clock: Memory(tmp_path / "memory.db", embedder=None, clock=clock)


class TestFileWithVectors(StoreContract):
    @pytest.fixture
    def make_memory(self, tmp_path: Path) -> MakeMemory:
        return lambda clock: Memory(tmp_path / "memory.db", embedder=WordEmbedder(), clock=clock)


class TestInMemoryOfWords(StoreContract):
    has_vectors = False

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(":memory:", embedder=None, clock=clock)


class TestInMemoryWithVectors(StoreContract):
    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(":memory:", embedder=WordEmbedder(), clock=clock)
