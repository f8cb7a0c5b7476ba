"""Embed with a synchronous library on one dedicated thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from memory_core.concurrency.threads import keep_for_ever
from memory_core.embedding.checks import check_documents, unit_rows
from memory_core.embedding.model_threads import ModelThreads
from memory_core.errors import EmbeddingError
from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


TEXTS_A_JOB: Final = 32
"""Number of texts the thread embeds before it serves a waiting query."""


class Model(Protocol):
    """A loaded model, used by one thread only. Its exceptions become an `EmbeddingError`."""

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        """One vector per text, of any length."""
        ...

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query."""
        ...


class ThreadedEmbedder:
    """A model that is loaded and run on one thread, which starts with the first text.

    After `close` the next call loads the model again. `FastEmbedEmbedder` and `SentenceTransformerEmbedder` derive from
    it.

    Args:
        fingerprint: The fingerprint to store with the vectors.
        load: Loads the model; called on the thread.
    """

    def __init__(self, fingerprint: Fingerprint, load: Callable[[], Model]) -> None:
        self._fingerprint = fingerprint
        self._load = load
        self._start()

    def _start(self) -> None:
        """Start with nothing loaded, in this process."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """Known before the model is loaded."""
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given, shape `(len(texts), dimensions)`.

        Raises:
            EmbeddingError: The model cannot be loaded or run.
        """
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        check_documents(texts)
        worker = self._running()
        given = [_clean(text) for text in texts]
        jobs = [given[start : start + TEXTS_A_JOB] for start in range(0, len(given), TEXTS_A_JOB)]
        parts = [await worker.thread.run(self._documents, worker, job) for job in jobs]
        return np.concatenate([np.zeros((0, self._fingerprint.dimensions), np.float32), *parts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a query, shape `(dimensions,)`; raises as `embed_documents` does."""
        worker = self._running()
        rows = await worker.thread.run(self._query, worker, _clean(text))
        vector: NDArray[np.float32] = rows[0]
        return vector

    async def close(self) -> None:
        """Release the model and the thread, without waiting for running work."""
        self._insist_on_process()
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.thread.stop()

    def _insist_on_process(self) -> None:
        """Start again in a forked child: it has no such thread, and may have copied a locked lock."""
        if self._process != os.getpid():
            keep_for_ever(self._worker)
            self._start()

    def _running(self) -> _Worker:
        self._insist_on_process()
        with self._lock:
            if self._worker is None:
                self._worker = _Worker(self._load)
            return self._worker

    def _documents(self, worker: _Worker, texts: list[str]) -> NDArray[np.float32]:
        return self._units(lambda: worker.model().documents(texts), len(texts))

    def _query(self, worker: _Worker, text: str) -> NDArray[np.float32]:
        return self._units(lambda: [worker.model().query(text)], 1)

    def _units(self, embed: Callable[[], Sequence[NDArray[np.float32]]], count: int) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415

        name, dimensions = self._fingerprint.name, self._fingerprint.dimensions
        try:
            rows = np.asarray(embed(), np.float64)
        except Exception as error:  # the libraries' exceptions have no common base class
            raise EmbeddingError(f"{name} cannot be used: {type(error).__name__}: {error}") from error
        if rows.shape != (count, dimensions):
            raise EmbeddingError(
                f"{name} returned an array of shape {rows.shape} for {count} texts, but its fingerprint has "
                f"{dimensions} dimensions; give dimensions={rows.shape[-1] if rows.ndim else 0}"
            )
        return unit_rows(name, rows)


class _Worker:
    """The thread and, once loaded, its model."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self._model: Model | None = None
        self.thread = ModelThreads(1, "memory-core-model")

    def model(self) -> Model:
        """The model, loaded at the first call; called on the thread only."""
        if self._model is None:
            self._model = self._load()
        return self._model


def _clean(text: str) -> str:
    """The text without lone surrogates, which tokenizers written in Rust do not accept."""
    return text.encode("utf-8", "replace").decode()
