"""A loaded model with its threads: the documents of several calls are spread over the cores, queries never wait for
them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from memory_core.concurrency.cores import cores, cores_for_documents
from memory_core.embedding.local_model import LocalModel
from memory_core.embedding.model_threads import ModelThreads

T = TypeVar("T")

_TEXTS_A_JOB: Final = 8
_CHARS_A_JOB: Final = 1_000
"""Most texts of a job of a thread and, if it has several, most characters: about 20 ms of work. Other callers of the
embedder wait that long, and so does the end of the interpreter."""

_TEXTS_OF_ONE_THREAD: Final = 32
"""Texts of a job of the only thread; queries wait that long."""

_MOST_CALLS: Final = 2
"""Calls for whose documents there are threads; the jobs of more calls wait for each other."""


class LoadedModel:
    """A model, loaded with the first text, and its threads: those for documents, and those for queries.

    Calls that embed documents at the same time divide the cores among them, and each has at least one job under way. So
    a short text begins beside a long one, and not behind the jobs of the long one.

    Args:
        load: Opens the model; called on a thread.
        is_single: True for a model that bears one call at a time: it has one thread.
    """

    def __init__(self, load: Callable[[], LocalModel], *, is_single: bool) -> None:
        self._load = load
        self._is_single = is_single
        self._loading = threading.Lock()
        """Locked while the model is read, on these threads only."""
        self._model: LocalModel | None = None
        self.documents = ModelThreads(1 if is_single else _MOST_CALLS * cores(), "memory-core-embed")
        self.queries = self.documents if is_single else ModelThreads(cores(), "memory-core-query")
        self._calls = 0
        """Calls that embed documents now."""
        self._counting = threading.Lock()

    def model(self) -> LocalModel:
        """The model; called on a thread."""
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model

    def jobs(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The texts in jobs of a thread, so small that even a few texts are spread over the cores."""
        if self._is_single:
            return (list(texts[at : at + _TEXTS_OF_ONE_THREAD]) for at in range(0, len(texts), _TEXTS_OF_ONE_THREAD))
        return _short_jobs(texts, max(1, min(_TEXTS_A_JOB, -(-len(texts) // cores_for_documents()))))

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

    def stop(self) -> None:
        """Take no more work; what was accepted is still done, and not waited for."""
        self.documents.stop()
        self.queries.stop()

    @property
    def _most_at_once(self) -> int:
        """Jobs of a call that may be submitted."""
        return 1 if self._is_single else max(1, cores_for_documents() // self._calls)

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


def _short_jobs(texts: Sequence[str], most: int) -> Iterator[list[str]]:
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
