"""Embedders of the core for Xaibo's modules, and Xaibo's embedders for the core."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from memory_core import (
    Embedder,
    EmbeddingError,
    Fingerprint,
    MiniLmEmbedder,
    MultilingualEmbedder,
    ThreadedEmbedder,
)
from memory_xaibo.modules import Config, injects, options
from memory_xaibo.protocols import EmbeddingProtocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"
"""Shipped with the core: no download, no torch."""


class UnsupportedModalityError(EmbeddingError, NotImplementedError):
    """The embedder cannot read this kind of data; nothing was stored."""


class TextEmbedder(EmbeddingProtocol):
    """An embedder of the core for Xaibo's modules. Vectors have unit length; a blank text gets a vector of zeros.

    Args:
        config: Has no options.
        embedder: An embedder of the core; by default that of a memory, which runs offline.
    """

    @injects()
    def __init__(self, config: Config | None = None, *, embedder: Embedder | None = None) -> None:
        options(config, type(self).__name__, ())
        self._embedder = MultilingualEmbedder() if embedder is None else embedder

    async def text_to_embedding(self, text: str) -> Vector:
        """Return the vector of a text."""
        import numpy as np  # noqa: PLC0415  (not at import)

        if not text.strip():
            return np.zeros(self._embedder.fingerprint.dimensions, np.float32)
        vector: Vector = (await self._embedder.embed_documents([text]))[0]
        return vector

    async def image_to_embedding(self, image_data: bytes) -> Vector:  # noqa: ARG002  (the protocol's)
        """Refused: the core's embedders read text.

        Raises:
            UnsupportedModalityError: Always.
        """
        raise self._refusal("Image", "a CLIP model")

    async def audio_to_embedding(self, audio_data: bytes) -> Vector:  # noqa: ARG002  (the protocol's)
        """Refused: the core's embedders read text.

        Raises:
            UnsupportedModalityError: Always.
        """
        raise self._refusal("Audio", "a model that reads audio")

    def _refusal(self, kind: str, model: str) -> UnsupportedModalityError:
        name = self._embedder.fingerprint.name
        return UnsupportedModalityError(f"{kind} embedding requires {model}, and {name!r} reads text only")


class SentenceTransformerEmbedder(TextEmbedder):
    """A sentence-transformers model for Xaibo's modules.

    Args:
        config: `model_name` and `model_kwargs`, as for Xaibo's own embedder; keyword arguments override them.
        model_name: By default all-MiniLM-L6-v2, which is shipped with the core and needs neither torch nor a download;
            any other model needs `pip install 'memory-core[sentence-transformers]'`.
        model_kwargs: `device`, `revision`, `local_files_only` and `dimensions` of the core's
            `SentenceTransformerEmbedder`, for models other than the default.

    Raises:
        InvalidInputError: The configuration has an unknown option, or the model's dimensions are not known.
    """

    @injects()
    def __init__(
        self,
        config: Config | None = None,
        *,
        model_name: str | None = None,
        model_kwargs: Config | None = None,
    ) -> None:
        given = options(config, "SentenceTransformerEmbedder", ("model_name", "model_kwargs"))
        self.model_name: str = given.get("model_name", DEFAULT_MODEL) if model_name is None else model_name
        kwargs = given.get("model_kwargs") if model_kwargs is None else model_kwargs
        known = options(kwargs, "model_kwargs", ("device", "revision", "local_files_only", "dimensions"))
        super().__init__(embedder=_named(self.model_name, known))


def _named(model: str, known: dict[str, Any]) -> Embedder:
    if model == DEFAULT_MODEL:
        return MiniLmEmbedder()
    from memory_core import SentenceTransformerEmbedder as Transformer  # noqa: PLC0415  (an extra of its own)

    return Transformer(model, **known)


class XaiboEmbedder(ThreadedEmbedder):
    """Uses a Xaibo embedder as the embedder of a memory.

    ```python
    memory = Memory("notes.db", embedder=XaiboEmbedder(embedder, name="text-embedding-3-small", dimensions=1536))
    ```

    Its methods run one at a time on a separate event loop in a separate thread.

    Args:
        embedder: Any implementation of Xaibo's `EmbeddingProtocol`.
        name: Name of the model, stored with every vector so that vectors of two models are never compared; of one that
            changes under its name, with its version ("mine-2").
        dimensions: Length of the vectors.
    """

    def __init__(self, embedder: EmbeddingProtocol, *, name: str, dimensions: int) -> None:
        super().__init__(Fingerprint(name, "1", dimensions), lambda: _Model(embedder))


class _Model:
    """Calls a Xaibo embedder from the embedder thread."""

    def __init__(self, embedder: EmbeddingProtocol) -> None:
        self._embedder = embedder
        self._loop = asyncio.new_event_loop()
        weakref.finalize(self, self._loop.close)

    def documents(self, texts: list[str]) -> Sequence[Vector]:
        return self._loop.run_until_complete(self._embedded(texts))

    def query(self, text: str) -> Vector:
        return self.documents([text])[0]

    async def _embedded(self, texts: list[str]) -> list[Vector]:
        return [await self._embedder.text_to_embedding(text) for text in texts]
