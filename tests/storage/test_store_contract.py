"""The contract of every store, kept by the embedded one with vectors.

On disk, and without vectors, it keeps the parts to which that makes a difference; most other tests of the project run
on files without vectors. Over rows of another kind each promise is tested once; `make torture` runs the rest.
"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

from memory_core import Memory, QdrantStore
from memory_core.operation import OPERATIONS
from memory_core.protocols import Adding, LeanReads, Maintained
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.testing import ReembeddingContract, ReopeningContract, StoreContract
from memory_core.testing.base import MakeEmbedder, MakeMemory
from memory_core.testing.operating import OperatorContract
from memory_core.testing.owners import ATTEMPTS
from memory_core.testing.records import RecordContract
from memory_core.testing.searches import SearchContract
from memory_core.testing.sharing import CALLS
from memory_core.testing.sources import SourceKeyContract
from tests.storage.embedders import WordEmbedder
from tests.storage.sample import Sample

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.uncovered
class TestInMemoryOfWords(Sample, StoreContract):
    parts = (RecordContract, SearchContract)

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
    """The contracts of a file: writes that others see, transactions, erasure, checks, and opening it again."""

    @pytest.fixture
    def make_embedder(self) -> MakeEmbedder:
        return WordEmbedder

    @pytest.fixture
    def make_memory(self, tmp_path: Path) -> MakeMemory:
        return lambda clock: Memory(tmp_path / "memory.db", embedder=WordEmbedder(), clock=clock)


class TestRowsInDictionaries(Sample, StoreContract):
    """The store of the examples: the rules, over rows of another kind."""

    @pytest.fixture
    def make_memory(self) -> MakeMemory:
        make = run_path(str(EXAMPLES / "own_store.py"))["shelf_store"]
        return lambda clock: Memory(make(clock), clock=clock)


def test_the_contract_calls_every_operation_of_a_handle() -> None:
    assert ATTEMPTS.keys() == CALLS.keys() == set(OPERATIONS)


def test_the_stores_of_this_package_lack_nothing_that_is_optional() -> None:
    assert all(issubclass(QdrantStore, protocol) for protocol in (LeanReads, Maintained))
    assert all(issubclass(SqliteStore, protocol) for protocol in (Adding, LeanReads, Maintained))
