"""Embed with sentence-transformers: any model from the hub or a directory, run by torch."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sentence_transformers") is None:
    raise ImportError(
        "SentenceTransformerEmbedder needs sentence-transformers: pip install 'memory-core[sentence-transformers]'"
    )

import os
from collections.abc import Sequence
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
    "all-MiniLM-L6-v2": 384,
    "all-MiniLM-L12-v2": 384,
    "all-mpnet-base-v2": 768,
    "multi-qa-mpnet-base-dot-v1": 768,
    "paraphrase-multilingual-MiniLM-L12-v2": 384,
}
"""By sbert.net/docs/sentence_transformer/pretrained_models.html."""


class SentenceTransformerEmbedder(ThreadedEmbedder):
    """A model from the hub (downloaded on first use) or a local directory, with the model's prompts.

    sentence-transformers and torch are imported and the model loaded on a thread of this embedder, with the first
    text: that takes about ten seconds.

    Args:
        model: A name on the hub, or the path of a directory.
        dimensions: Length of the vectors; needed for models that `KNOWN_DIMENSIONS` does not list.
        name: The name in the fingerprint; the model's name by default. Set it for a directory, whose path may change.
        revision: The revision on the hub; part of the fingerprint.
        device: The torch device.
        local_files_only: Never use the network.

    Raises:
        InvalidInputError: The dimensions of the model are neither given nor known.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "all-MiniLM-L6-v2",
        *,
        dimensions: int | None = None,
        name: str | None = None,
        revision: str = "main",
        device: str = "cpu",
        local_files_only: bool = False,
    ) -> None:
        source = os.fspath(model)
        known = source.removeprefix("sentence-transformers/")
        super().__init__(
            Fingerprint(name or source, revision, known_dimensions(known, dimensions, KNOWN_DIMENSIONS)),
            partial(_load, source, revision, device, local_files_only=local_files_only),
        )


def _load(source: str, revision: str, device: str, *, local_files_only: bool) -> _Loaded:
    onnx_telemetry.turn_off()  # it may import onnxruntime, too
    transformer: Any = import_module("sentence_transformers").SentenceTransformer
    return _Loaded(transformer(source, revision=revision, device=device, local_files_only=local_files_only))


class _Loaded:
    def __init__(self, model: Any) -> None:
        self._model = model

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        rows: Sequence[NDArray[np.float32]] = self._model.encode_document(texts, show_progress_bar=False)
        return rows

    def query(self, text: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._model.encode_query(text, show_progress_bar=False)
        return row
