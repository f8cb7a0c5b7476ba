"""sentence-transformers, where it is installed and a model is given by path: `MEMORY_CORE_SENTENCE_MODEL=/dir`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

import pytest

from memory_core import Embedder
from memory_core.testing.embedder import EmbedderContract

pytest.importorskip("sentence_transformers", reason="sentence-transformers (with torch) is not installed")
DIRECTORY = os.environ.get("MEMORY_CORE_SENTENCE_MODEL", "")
if not DIRECTORY:
    pytest.skip("no local model: set MEMORY_CORE_SENTENCE_MODEL to its directory", allow_module_level=True)

from memory_core.embedding.sentence_transformers import SentenceTransformerEmbedder  # noqa: E402


class TestSentenceTransformers(EmbedderContract):
    tolerance: ClassVar[float] = 1e-4

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return lambda: SentenceTransformerEmbedder(DIRECTORY, dimensions=384, name="minilm", local_files_only=True)
