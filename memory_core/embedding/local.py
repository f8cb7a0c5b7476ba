"""Embed with a model on this machine's disk, on threads of our own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from memory_core.embedding.model import Pooling, SentenceModel, load
from memory_core.errors import EmbeddingError, InvalidInputError
from memory_core.models import Fingerprint
from memory_core.threads import keep_for_ever, mark_own_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
T = TypeVar("T")

_TEXTS_A_JOB: Final = 8
"""Most that a thread embeds before it looks up: some 30 ms of work, also the longest wait at interpreter exit."""

_CACHED_QUERIES: Final = 1_024
"""Vectors of questions that are remembered: 1.6 MB at 384 dimensions."""


class OnnxEmbedder:
    """Any BERT sentence model in a local directory: `model.onnx` (or `onnx/model.onnx`) and `vocab.txt`.

    The vocabulary has to be an uncased WordPiece one, as in all-MiniLM, bge-*-en, e5-*-v2, gte and arctic-embed. The
    same text gives the same vector, whatever it is embedded with.

    Nothing is opened before the first text. Documents are spread over all cores, a few at a time; questions have
    threads of their own and never wait for documents. Calls may come from any number of event loops. After `close`
    the next call opens the model again.

    Args:
        directory: Where the files are.
        fingerprint: What to store beside the vectors. Change the revision when you change the files.
        max_tokens: A text is cut after this many, `[CLS]` and `[SEP]` included; at least 3, at most what the model
            was trained with (512 for BERT).
        pooling: Used if the model gives one vector a token (1_Pooling/config.json says which one it wants).
        query_prefix: Put before every question, if the model was trained so ("query: " for e5).
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
            raise InvalidInputError(f"max_tokens is {max_tokens}; it has to leave room for a token: at least 3")
        self._directory = Path(directory)
        self._fingerprint = fingerprint
        self._max_tokens = max_tokens
        self._pooling: Pooling = pooling
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._start()

    def _start(self) -> None:
        """With nothing loaded, in this process."""
        self._process = os.getpid()
        self._recent = _Recent(_CACHED_QUERIES)
        self._lock = threading.Lock()
        """Held for moments, also on an event loop's thread."""
        self._threads: _Threads | None = None
        self._loading = threading.Lock()
        """Held while the model is read, on threads of our own only."""
        self._model: SentenceModel | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """As given; no file is looked at."""
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given, shape `(len(texts), dimensions)`.

        An empty text has a vector too: the model's for no words at all.

        Raises:
            EmbeddingError: The model's files are missing or damaged, or it was closed meanwhile.
        """
        if isinstance(texts, str):
            raise InvalidInputError(f"embed_documents takes a list of texts, not one text: [{texts[:40]!r}]")
        self._insist_on_process()
        threads = self._open_threads()
        given = [self._document_prefix + text for text in texts]
        size = threads.share(len(given))
        jobs = [given[start : start + size] for start in range(0, len(given), size)] or [given]
        parts = await threads.each(self._embed, jobs)
        return parts[0] if len(parts) == 1 else await threads.document(_joined, parts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question, shape `(dimensions,)`; remembered for the last 1,024 questions.

        Raises:
            EmbeddingError: The model's files are missing or damaged, or it was closed meanwhile.
        """
        return (await self._question(text)).vector.copy()

    async def familiarity(self, text: str) -> float:
        """How far the vocabulary knows the words of a question; see `WordPiece.familiarity`.

        Raises:
            EmbeddingError: As for `embed_query`.
        """
        return (await self._question(text)).familiarity

    async def _question(self, text: str) -> _Question:
        self._insist_on_process()
        known = self._recent.get(text)
        if known is None:
            known = await self._open_threads().query(self._ask, text)
            self._recent.put(text, known)
        return known

    async def close(self) -> None:
        """Let go of the model and the threads, without waiting for what they still run."""
        self._insist_on_process()
        with self._lock:
            threads, self._threads, self._model = self._threads, None, None
        if threads is not None:
            threads.stop()

    def _insist_on_process(self) -> None:
        """Begin again in a forked child: it has none of the threads, and locks may have been copied while held."""
        if self._process != os.getpid():
            keep_for_ever(self._model)
            keep_for_ever(self._threads)
            self._start()

    def _open_threads(self) -> _Threads:
        with self._lock:
            if self._threads is None:
                self._threads = _Threads()
            return self._threads

    def _ask(self, text: str) -> _Question:
        model = self._loaded()
        return _Question(model.embed([self._query_prefix + text])[0], model.tokenizer.familiarity(text))

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        return self._loaded().embed(texts)

    def _loaded(self) -> SentenceModel:
        with self._loading:
            if self._model is None:
                self._model = load(
                    self._directory,
                    dimensions=self._fingerprint.dimensions,
                    max_tokens=self._max_tokens,
                    pooling=self._pooling,
                )
            return self._model


class _Threads:
    """As many threads for documents as there are cores, and as many for questions; each starts when it is needed."""

    def __init__(self) -> None:
        self._cores = _cores()
        self._documents = ThreadPoolExecutor(self._cores, "memory-core-embed", mark_own_thread)
        self._queries = ThreadPoolExecutor(self._cores, "memory-core-query", mark_own_thread)

    def share(self, texts: int) -> int:
        """How many of so many texts make one job: a few texts are spread over the cores, too."""
        return max(1, min(_TEXTS_A_JOB, -(-texts // self._cores)))

    async def query(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._queries, function, *args, **kwargs)

    async def document(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._documents, function, *args, **kwargs)

    async def each(self, function: Callable[[list[str]], T], jobs: Sequence[list[str]]) -> list[T]:
        """The results in the order of the jobs.

        No more jobs are handed out than threads can begin at once: what is handed out would be finished even at
        interpreter exit, and would stand before the jobs of other callers.
        """
        results: dict[int, T] = {}
        waiting = iter(enumerate(jobs))

        async def work() -> None:
            for number, job in waiting:
                results[number] = await self.document(function, job)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._cores, len(jobs))):
                    group.create_task(work())
        except ExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  (the first says it; it keeps the cause it has)
        return [results[number] for number in range(len(jobs))]

    def stop(self) -> None:
        self._documents.shutdown(wait=False)
        self._queries.shutdown(wait=False)

    async def _run(self, pool: ThreadPoolExecutor, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            future = pool.submit(function, *args, **kwargs)
        except RuntimeError as error:  # the pool was shut down, or the interpreter is ending
            raise EmbeddingError("the embedder was closed while it had texts to embed") from error
        return await asyncio.wrap_future(future)


class _Question(NamedTuple):
    vector: NDArray[np.float32]
    familiarity: float


class _Recent:
    """The vectors of the last questions, by a digest of the text: bounded in bytes, and no text is kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._questions: OrderedDict[bytes, _Question] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> _Question | None:
        key = _digest(text)
        with self._lock:
            if key in self._questions:
                self._questions.move_to_end(key)
            return self._questions.get(key)

    def put(self, text: str, question: _Question) -> None:
        with self._lock:
            self._questions[_digest(text)] = question
            if len(self._questions) > self._size:
                self._questions.popitem(last=False)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _cores() -> int:
    """What this process may use, which `taskset` and containers make fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _joined(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415  (loaded by now)

    return np.concatenate(parts)
