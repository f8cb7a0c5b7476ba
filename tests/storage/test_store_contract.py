"""The contract of every store, kept by the embedded one with and without vectors.

On disk it keeps the parts that a file makes a difference to; most other tests of the project run on files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import Memory, QdrantStore
from memory_core.protocols import BackingUp, Counting, KeyValue, Knowing, Listing, Maintained, Reembedding, Versioned
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.testing import ReembeddingContract, ReopeningContract, StoreContract
from memory_core.testing.base import MakeEmbedder, MakeMemory
from memory_core.testing.operating import OperatorContract
from memory_core.testing.records import RecordContract
from memory_core.testing.sources import SourceKeyContract
from tests.storage.embedders import WordEmbedder


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


class TestFile(ReopeningContract, ReembeddingContract, RecordContract, SourceKeyContract, OperatorContract):
    """What a file has a part in: writes that others see, transactions, erasure, checks, and opening it again."""

    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder:
        return WordEmbedder

    @pytest.fixture
    def make_memory(self, tmp_path: Path) -> MakeMemory:
        return lambda clock: Memory(tmp_path / "memory.db", embedder=WordEmbedder(), clock=clock)


def test_the_stores_of_this_package_lack_nothing_that_is_optional() -> None:
    everything = (Counting, Knowing, Versioned, KeyValue, Maintained)
    assert all(issubclass(QdrantStore, protocol) for protocol in everything)
    assert all(issubclass(SqliteStore, protocol) for protocol in (*everything, Listing, Reembedding, BackingUp))
