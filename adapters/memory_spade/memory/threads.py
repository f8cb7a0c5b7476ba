"""Blocking calls of an agent's memory, in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Final, TypeVar

from memory_spade.memory.exceptions import MemoryBackendError

T = TypeVar("T")

MAX_THREADS: Final = 100
"""Most threads of blocking calls in a process."""


class _Threads:
    running = 0
    counting = threading.Lock()


async def in_thread(what: str, work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread of its own.

    In a pool, some calls that hang would leave no thread to others, such as the resolver of host names, and would
    keep the process from ending.

    Raises:
        MemoryBackendError: Too many such calls are waiting, or no thread can be started.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
            done.set_exception(error)
        else:
            done.set_result(result)
        finally:
            with _Threads.counting:
                _Threads.running -= 1

    with _Threads.counting:
        if _Threads.running >= MAX_THREADS:
            raise MemoryBackendError(f"{what} is not begun: {MAX_THREADS} such calls are waiting already")
        _Threads.running += 1
    try:
        threading.Thread(target=run, name="memory-core agent", daemon=True).start()
    except RuntimeError as error:
        with _Threads.counting:
            _Threads.running -= 1
        raise MemoryBackendError(f"{what} is not begun: {error}") from error
    return await asyncio.wrap_future(done)
