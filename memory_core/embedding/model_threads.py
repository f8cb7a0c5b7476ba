"""Threads that a model runs on, so that it never holds up an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from memory_core.concurrency.threads import mark_own_thread
from memory_core.errors import EmbeddingError

P = ParamSpec("P")
T = TypeVar("T")


class ModelThreads:
    """Threads of an embedder, each of which starts when it is needed; calls may come from any number of event loops.

    Args:
        count: The maximum number of threads.
        name: The beginning of the names of the threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, name, mark_own_thread)

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a function that a thread calls.

        Raises:
            EmbeddingError: The threads were stopped, or the interpreter is shutting down.
        """
        try:
            future = self._pool.submit(function, *args, **kwargs)
        except RuntimeError as error:
            raise EmbeddingError("the embedder was closed while it had texts to embed") from error
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Take no more work; what was accepted is still done, and not waited for."""
        self._pool.shutdown(wait=False)
