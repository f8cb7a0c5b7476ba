"""Embed with a model on this machine's disk, on dedicated threads.

A text always has the same vector, regardless of the texts embedded with it. Nothing is opened before the first text.
Documents are spread over all cores, a few at a time (a server leaves one: `concurrency/cores.py`); queries have
separate threads and never wait for documents. A model that bears one call at a time has one thread for both. Calls may
come from any number of event loops. After `close` the next call opens the model again.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memory_core.concurrency.threads import keep_for_ever
from memory_core.embedding.checks import check_documents
from memory_core.embedding.loaded_model import LoadedModel
from memory_core.embedding.local_model import Asked, LocalModel
from memory_core.embedding.model import Pooling, SentenceModel, load
from memory_core.errors import InvalidInputError
from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CACHED_QUERIES: Final = 1_024
"""Number of cached query vectors: 2.4 MB at 576 dimensions."""


class LocalEmbedder(ABC):
    """An embedder with a model in this process; a subclass loads it.

    Args:
        fingerprint: The fingerprint to store with the vectors.
        is_single: True for a model that bears one call at a time: it is loaded and run on one thread.
    """

    def __init__(self, fingerprint: Fingerprint, *, is_single: bool = False) -> None:
        self._fingerprint = fingerprint
        self._is_single = is_single
        self._start()

    @abstractmethod
    def load(self) -> LocalModel:
        """Open the model; called on a thread of the embedder.

        Raises:
            EmbeddingError: Its files are missing or cannot be read.
        """

    def _start(self) -> None:
        """Start with nothing loaded, in this process."""
        self._process = os.getpid()
        self._recent = _Recent(_CACHED_QUERIES)
        self._lock = threading.Lock()
        """Locked briefly only, also on an event loop's thread."""
        self._loaded: LoadedModel | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """The given fingerprint; nothing is loaded."""
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given, shape `(len(texts), dimensions)`.

        An empty text also has a vector: that of zero words.

        Raises:
            EmbeddingError: The model cannot be loaded or run, or it was closed meanwhile.
        """
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        check_documents(texts)
        if not texts:
            return np.empty((0, self._fingerprint.dimensions), np.float32)
        loaded = self._running()
        parts = await loaded.each(lambda job: loaded.model().embed(job), list(loaded.jobs(texts)))
        return parts[0] if len(parts) == 1 else await loaded.documents.run(lambda: np.concatenate(parts))

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a query, shape `(dimensions,)`; cached for the latest 1,024 queries.

        Raises:
            EmbeddingError: The model cannot be loaded or run, or it was closed meanwhile.
        """
        return (await self.asked(text)).vector.copy()

    async def familiarity(self, text: str) -> float:
        """The familiarity of the model with the words of a query, from 0 to 1.

        Raises:
            EmbeddingError: As for `embed_query`.
        """
        return (await self.asked(text)).familiarity

    async def asked(self, text: str) -> Asked:
        """The answer of the model to a query; it is cached as its vector is, which nobody changes.

        Raises:
            EmbeddingError: As for `embed_query`.
        """
        loaded = self._running()
        known = self._recent.get(text)
        if known is None:
            known = await loaded.queries.run(lambda: loaded.model().ask(text))
            self._recent.put(text, known)
        return known

    async def close(self) -> None:
        """Release the model and the threads, without waiting for running work."""
        self._insist_on_process()
        with self._lock:
            loaded, self._loaded = self._loaded, None
        if loaded is not None:
            loaded.stop()

    def _insist_on_process(self) -> None:
        """Start again in a forked child: it has none of the threads, and may have copied locked locks."""
        if self._process != os.getpid():
            keep_for_ever(self._loaded)
            self._start()

    def _running(self) -> LoadedModel:
        self._insist_on_process()
        with self._lock:
            if self._loaded is None:
                self._loaded = LoadedModel(self.load, is_single=self._is_single)
            return self._loaded


class OnnxEmbedder(LocalEmbedder):
    """Any sentence model in a local directory: `model.onnx` (or `onnx/model.onnx`) and `vocab.txt` or `tokenizer.json`.

    `vocab.txt` must be an uncased WordPiece vocabulary, as in all-MiniLM, bge-*-en, e5-*-v2, gte and arctic-embed.
    Other models, those for many languages among them, have a `tokenizer.json`, which is used if there is no `vocab.txt`
    and needs the extra `tokenizers`.

    Args:
        directory: The directory of the files.
        fingerprint: The fingerprint to store with the vectors. Change the revision when you change the files.
        max_tokens: A text is truncated after this many, including `[CLS]` and `[SEP]`; at least 3, at most what the
            model was trained with (512 for BERT).
        pooling: Used if the model returns one vector per token (see the model's 1_Pooling/config.json).
        query_prefix: Put before every query, if the model was trained with it ("query: " for e5).
        document_prefix: Put before every document ("passage: " for e5).
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        fingerprint: Fingerprint,
        *,
        max_tokens: int = 256,
        pooling: Pooling = "mean",
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        if max_tokens < 3:
            raise InvalidInputError(f"max_tokens must be at least 3 (two are special tokens), not {max_tokens}")
        super().__init__(fingerprint)
        self._directory = Path(directory)
        self._max_tokens = max_tokens
        self._pooling: Pooling = pooling
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix

    def load(self) -> SentenceModel:
        """See `LocalEmbedder.load`."""
        return load(
            self._directory,
            dimensions=self.fingerprint.dimensions,
            max_tokens=self._max_tokens,
            pooling=self._pooling,
            query_prefix=self._query_prefix,
            document_prefix=self._document_prefix,
        )


class _Recent:
    """The vectors of the latest queries, by a digest of the text: bounded in bytes, and no text is kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._questions: OrderedDict[bytes, Asked] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Asked | None:
        key = _digest(text)
        with self._lock:
            if key in self._questions:
                self._questions.move_to_end(key)
            return self._questions.get(key)

    def put(self, text: str, question: Asked) -> None:
        with self._lock:
            self._questions[_digest(text)] = question
            if len(self._questions) > self._size:
                self._questions.popitem(last=False)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
