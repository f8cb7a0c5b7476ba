"""Embed with a model on this machine's disk, on dedicated threads.

A text always has the same vector, regardless of the texts embedded with it. Nothing is opened before the first text.
Documents are spread over all cores, a few at a time (a server leaves one: `concurrency/cores.py`); queries have
separate threads and never wait for documents. Calls may come from any number of event loops. After `close` the next
call opens the model again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from memory_core.concurrency.cores import cores, cores_for_documents
from memory_core.concurrency.threads import keep_for_ever
from memory_core.embedding.checks import check_documents
from memory_core.embedding.local_model import Asked, LocalModel
from memory_core.embedding.model import Pooling, SentenceModel, load
from memory_core.embedding.model_threads import ModelThreads
from memory_core.errors import InvalidInputError
from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

_TEXTS_A_JOB: Final = 8
_CHARS_A_JOB: Final = 1_000
"""Most texts of a job of a thread and, if it has several, most characters: about 20 ms of work. Other callers of the
embedder wait that long, and so does the end of the interpreter."""

_MOST_CALLS: Final = 2
"""Calls for whose documents there are threads; the jobs of more calls wait for each other."""

_CACHED_QUERIES: Final = 1_024
"""Number of cached query vectors: 2.4 MB at 576 dimensions."""


class LocalEmbedder(ABC):
    """An embedder with a model in this process; a subclass loads it.

    Args:
        fingerprint: The fingerprint to store with the vectors.
    """

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._fingerprint = fingerprint
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
        self._threads: _Threads | None = None
        self._loading = threading.Lock()
        """Locked while the model is read, on this embedder's threads only."""
        self._model: LocalModel | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """The given fingerprint; no file is read."""
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given, shape `(len(texts), dimensions)`.

        An empty text also has a vector: that of zero words.

        Raises:
            EmbeddingError: The model's files are missing or cannot be read, or it was closed meanwhile.
        """
        check_documents(texts)
        self._insist_on_process()
        threads = self._open_threads()
        given = list(texts)
        jobs = list(_jobs(given, threads.share(len(given)))) or [given]
        parts = await threads.each(self._embed, jobs)
        return parts[0] if len(parts) == 1 else await threads.documents.run(_joined, parts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a query, shape `(dimensions,)`; cached for the latest 1,024 queries.

        Raises:
            EmbeddingError: The model's files are missing or cannot be read, or it was closed meanwhile.
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
        self._insist_on_process()
        known = self._recent.get(text)
        if known is None:
            known = await self._open_threads().queries.run(self._ask, text)
            self._recent.put(text, known)
        return known

    async def close(self) -> None:
        """Release the model and the threads, without waiting for running work."""
        self._insist_on_process()
        with self._lock:
            threads, self._threads, self._model = self._threads, None, None
        if threads is not None:
            threads.stop()

    def _insist_on_process(self) -> None:
        """Start again in a forked child: it has none of the threads, and may have copied locked locks."""
        if self._process != os.getpid():
            keep_for_ever(self._model)
            keep_for_ever(self._threads)
            self._start()

    def _open_threads(self) -> _Threads:
        with self._lock:
            if self._threads is None:
                self._threads = _Threads()
            return self._threads

    def _ask(self, text: str) -> Asked:
        return self._loaded().ask(text)

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        return self._loaded().embed(texts)

    def _loaded(self) -> LocalModel:
        with self._loading:
            if self._model is None:
                self._model = self.load()
            return self._model


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


def _jobs(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """The texts, in jobs of so many at most."""
    job: list[str] = []
    chars = 0
    for text in texts:
        if job and (len(job) == most or chars + len(text) > _CHARS_A_JOB):
            yield job
            job, chars = [], 0
        job.append(text)
        chars += len(text)
    if job:
        yield job


class _Threads:
    """Threads for documents and for queries, one per core for each call; each starts when it is needed.

    Calls that embed documents at the same time divide the cores among them, and each has at least one job under way. So
    a short text begins beside a long one, and not behind the jobs of the long one.
    """

    def __init__(self) -> None:
        self.documents = ModelThreads(_MOST_CALLS * cores(), "memory-core-embed")
        self.queries = ModelThreads(cores(), "memory-core-query")
        self._calls = 0
        """Calls that embed documents now."""
        self._counting = threading.Lock()

    def share(self, texts: int) -> int:
        """Number of texts per job, so that even a few texts are spread over the cores."""
        return max(1, min(_TEXTS_A_JOB, -(-texts // cores_for_documents())))

    async def each(self, function: Callable[[list[str]], T], jobs: Sequence[list[str]]) -> list[T]:
        """The results in the order of the jobs.

        No more jobs are submitted than threads can start at once: submitted jobs would be finished even at interpreter
        exit, and would delay the jobs of other callers.
        """
        results: dict[int, T] = {}
        waiting, at_once = iter(enumerate(jobs)), 1

        async def work() -> None:
            nonlocal at_once
            for number, job in waiting:
                if at_once < self._most_at_once:
                    at_once += 1
                    group.create_task(work())
                results[number] = await self.documents.run(function, job)
                if at_once > self._most_at_once:
                    break
            at_once -= 1

        try:
            with self._call():
                async with asyncio.TaskGroup() as group:
                    group.create_task(work())
        except ExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  (the first one is enough; it keeps its cause)
        return [results[number] for number in range(len(jobs))]

    @property
    def _most_at_once(self) -> int:
        """Jobs of a call that may be submitted."""
        return max(1, cores_for_documents() // self._calls)

    @contextmanager
    def _call(self) -> Generator[None]:
        self._add_calls(1)
        try:
            yield
        finally:
            self._add_calls(-1)

    def _add_calls(self, change: int) -> None:
        with self._counting:
            self._calls += change

    def stop(self) -> None:
        self.documents.stop()
        self.queries.stop()


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


def _joined(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415  (loaded by now)

    return np.concatenate(parts)
