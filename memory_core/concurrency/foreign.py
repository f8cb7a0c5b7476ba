"""Calls of what is not part of this library: an embedder, a reranker, a model, a function of the application.

It may hang, ignore that it is cancelled, raise anything, or cancel itself. None of that may reach other callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from memory_core.errors import MemoryCoreError

T = TypeVar("T")


class NoAnswerError(MemoryCoreError):
    """A call was cancelled, although its caller was not."""


class LateAnswerError(NoAnswerError):
    """A call took too long."""


_left: set[asyncio.Task[Any]] = set()
"""Calls that nobody waits for any more, because a loop holds tasks only weakly."""


async def answer_within(seconds: float | None, call: Callable[[], Awaitable[T]]) -> T:
    """The result of a call. One that takes longer is cancelled, and nothing waits for its end: it may ignore that.

    It runs in a task of its own: before Python 3.13, a task group that fails leaves its task marked as cancelled, or
    hides that it was.

    Raises:
        NoAnswerError: It took longer, or was cancelled although its caller was not.
    """

    async def called() -> T:
        return await call()

    task = asyncio.create_task(called(), name="memory-core foreign call")
    _left.add(task)
    task.add_done_callback(_forget)
    try:
        await asyncio.wait({task}, timeout=seconds)  # not `asyncio.timeout`, which waits for what it cancels
        if not task.done():
            raise LateAnswerError(f"there was no answer within {seconds:g} s")
        if task.cancelled():
            raise NoAnswerError("the call was cancelled by what it called")
        return task.result()
    finally:
        task.cancel()  # does nothing if it has ended


def _forget(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # asyncio would otherwise print it with its message, which may quote
