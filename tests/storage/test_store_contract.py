"""The contract of every store, kept by the embedded one in each way it can be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import Memory
from memory_core.testing import ReembeddingContract, ReopeningContract, StoreContract
from memory_core.testing.base import MakeEmbedder, MakeMemory
from tests.storage.embedders import WordEmbedder


class TestFileOfWords(StoreContract):
    @pytest.fixture
    def make_memory(self, tmp_path: Path) -> MakeMemory:
        return lambda clock: Memory(tmp_path / "memory.db", embedder=None, clock=clock)


class TestFileWithVectors(StoreContract, ReopeningContract, ReembeddingContract):
    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder:
        return WordEmbedder

    @pytest.fixture
    def make_memory(self, tmp_path: Path) -> MakeMemory:
        return lambda clock: Memory(tmp_path / "memory.db", embedder=WordEmbedder(), clock=clock)


class TestInMemoryOfWords(StoreContract):
    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(":memory:", embedder=None, clock=clock)


class TestInMemoryWithVectors(StoreContract, ReembeddingContract):
    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder:
        return WordEmbedder

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        return lambda clock: Memory(":memory:", embedder=WordEmbedder(), clock=clock)
