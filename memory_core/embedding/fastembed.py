"""Embed with fastembed: many ONNX models by name, from Qdrant."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("fastembed") is None:
    raise ImportError("FastEmbedEmbedder needs fastembed: pip install 'memory-core[fastembed]'")

import os
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from memory_core.embedding import onnx_telemetry
from memory_core.embedding.checks import known_dimensions
from memory_core.embedding.threaded import ThreadedEmbedder
from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KNOWN_DIMENSIONS: Final = {
    "BAAI/bge-small-en-v1.5": 384,
    "BAAI/bge-base-en-v1.5": 768,
    "BAAI/bge-large-en-v1.5": 1024,
    "intfloat/multilingual-e5-large": 1024,
    "mixedbread-ai/mxbai-embed-large-v1": 1024,
    "nomic-ai/nomic-embed-text-v1.5": 768,
    "sentence-transformers/all-MiniLM-L6-v2": 384,
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": 384,
    "snowflake/snowflake-arctic-embed-s": 384,
}
"""From fastembed's list, `TextEmbedding.list_supported_models()`."""


class FastEmbedEmbedder(ThreadedEmbedder):
    """A model that fastembed knows by name; it is downloaded on first use unless `directory` contains it.

    fastembed is imported and the model loaded on a thread of this embedder, with the first text.

    Args:
        model: fastembed's name of the model.
        dimensions: Length of the vectors; needed for models that `KNOWN_DIMENSIONS` does not list.
        directory: The folder of the model's files (`model.onnx` and the tokenizer's JSON files, as fastembed lays them
            out); then no network is used.
        cache_dir: Folder for downloads; fastembed's default is a folder for temporary files.
        revision: Part of the fingerprint; change it when the files behind the name change.
        threads: Number of onnxruntime's threads; all cores by default.

    Raises:
        InvalidInputError: The dimensions of the model are neither given nor known.
    """

    def __init__(
        self,
        model: str = "BAAI/bge-small-en-v1.5",
        *,
        dimensions: int | None = None,
        directory: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        revision: str = "fastembed-1",
        threads: int | None = None,
    ) -> None:
        super().__init__(
            Fingerprint(model, revision, known_dimensions(model, dimensions, KNOWN_DIMENSIONS)),
            partial(
                _Loaded,
                model,
                None if directory is None else os.fspath(directory),
                None if cache_dir is None else os.fspath(cache_dir),
                threads,
            ),
        )


class _Loaded:
    def __init__(self, model: str, directory: str | None, cache_dir: str | None, threads: int | None) -> None:
        onnx_telemetry.turn_off()
        text_embedding: Any = import_module("fastembed").TextEmbedding
        self._model: Any = text_embedding(model, cache_dir=cache_dir, threads=threads, specific_model_path=directory)

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        rows: Iterable[NDArray[np.float32]] = self._model.passage_embed(texts)
        return list(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        rows: Iterable[NDArray[np.float32]] = self._model.query_embed(text)
        return next(iter(rows))
