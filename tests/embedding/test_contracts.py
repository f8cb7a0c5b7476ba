"""Our embedders keep the contract that is shipped for everybody's."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from memory_core.embedding.hashing import HashingEmbedder
from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.embedding.multilingual import MultilingualEmbedder
from memory_core.supplied import Embedder
from memory_core.testing.embedder import EmbedderContract

pytestmark = pytest.mark.uncovered


class TestMiniLm(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6  # a text's vector does not depend on its company

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return MiniLmEmbedder


class TestMultilingual(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6  # a text's vector does not depend on its company

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return MultilingualEmbedder


class TestHashing(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return HashingEmbedder
