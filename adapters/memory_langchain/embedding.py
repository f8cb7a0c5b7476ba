"""LangChain embeddings as the embedder of a memory."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, TypeVar

from memory_core import Fingerprint, ThreadedEmbedder

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.embeddings import Embeddings
    from numpy.typing import NDArray

T = TypeVar("T")


class LangChainEmbedder(ThreadedEmbedder):
    """Uses the `Embeddings` of an application as the embedder of a memory.

    ```python
    memory = Memory("notes.db", embedder=LangChainEmbedder(embeddings, name="text-embedding-3-small", dimensions=1536))
    ```

    It calls the synchronous methods of the embeddings, all on one thread; of embeddings that have only asynchronous
    ones, it calls those, on an event loop of that thread.

    Args:
        embeddings: Any object with `embed_documents` and `embed_query`, or their asynchronous forms.
        name: Name of the model, stored with every vector so that vectors of two models are never compared.
        dimensions: Length of the vectors.
        revision: Change it when the model changes under the same name.
    """

    def __init__(self, embeddings: Embeddings, *, name: str, dimensions: int, revision: str = "1") -> None:
        super().__init__(Fingerprint(name, revision, dimensions), lambda: _Model(embeddings))


class _Model:
    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        # LangGraph's wrapper of a function has `afunc` alone for an async one, and says so with a ValueError.
        self._is_async = hasattr(embeddings, "afunc") and not hasattr(embeddings, "func")
        self._loop: asyncio.AbstractEventLoop | None = None

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        some = self._embeddings
        return _rows(self._called(lambda: some.embed_documents(texts), lambda: some.aembed_documents(texts)))

    def query(self, text: str) -> NDArray[np.float32]:
        some = self._embeddings
        return _rows([self._called(lambda: some.embed_query(text), lambda: some.aembed_query(text))])[0]

    def _called(self, sync: Callable[[], T], asynchronous: Callable[[], Coroutine[object, object, T]]) -> T:
        if not self._is_async:
            try:
                return sync()
            except NotImplementedError:
                self._is_async = True
        return self._own_loop().run_until_complete(asynchronous())

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of this thread, one for all calls, because HTTP clients belong to the loop they were used on."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            weakref.finalize(self, self._loop.close)
        return self._loop


def _rows(vectors: list[list[float]]) -> list[NDArray[np.float32]]:
    import numpy as np  # noqa: PLC0415  (not needed by chains without vector search)

    rows = [np.asarray(vector, np.float32) for vector in vectors]
    # LangChain's and LangGraph's stores accept the vector zero, of a text without any known word, as near to nothing.
    # Here it becomes the direction farthest from counts of words, which is about orthogonal to vectors of models.
    return [row if row.any() else np.full_like(row, -1) for row in rows]
