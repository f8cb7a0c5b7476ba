"""LangChain embeddings as the embedder of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_core import Fingerprint, ThreadedEmbedder

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.embeddings import Embeddings
    from numpy.typing import NDArray


class LangChainEmbedder(ThreadedEmbedder):
    """Uses the `Embeddings` of an application as the embedder of a memory.

    ```python
    memory = Memory("notes.db", embedder=LangChainEmbedder(embeddings, name="text-embedding-3-small", dimensions=1536))
    ```

    It calls the synchronous methods of the embeddings, all on one thread.

    Args:
        embeddings: Any object with `embed_documents` and `embed_query`.
        name: Name of the model, stored with every vector so that vectors of two models are never compared.
        dimensions: Length of the vectors.
        revision: Change it when the model changes under the same name.
    """

    def __init__(self, embeddings: Embeddings, *, name: str, dimensions: int, revision: str = "1") -> None:
        super().__init__(Fingerprint(name, revision, dimensions), lambda: _Model(embeddings))


class _Model:
    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        return _rows(self._embeddings.embed_documents(texts))

    def query(self, text: str) -> NDArray[np.float32]:
        return _rows([self._embeddings.embed_query(text)])[0]


def _rows(vectors: list[list[float]]) -> list[NDArray[np.float32]]:
    import numpy as np  # noqa: PLC0415  (not needed by chains without vector search)

    return [np.asarray(vector, np.float32) for vector in vectors]
