"""A deadline for the calls of an agent's memory: one that hangs costs a call its memory, and never the agent."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import ClassVar, Final, TypeVar

from memory_core import MemoryCoreError, adapting
from memory_core.adapting import limits
from memory_spade.memory.exceptions import MemoryBackendError, MemoryTimeoutError

T = TypeVar("T")

DEFAULT_SECONDS: Final = limits.CALL_SECONDS
"""How long an agent waits for a call of its memory by default."""
MAX_THREADS: Final = 100
"""Most threads of blocking calls in a process."""


def checked_seconds(name: str, value: object) -> float:
    """Return a number of seconds above 0.

    Raises:
        TypeError: It is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TypeError(f"{name} must be a number of seconds above 0, such as {DEFAULT_SECONDS:g}, not {value!r}")
    return float(value)


class Deadline(adapting.Deadline):
    """The core's deadline with the documented errors."""

    late_error: ClassVar[type[MemoryCoreError]] = MemoryTimeoutError
    cancelled_error: ClassVar[type[MemoryCoreError]] = MemoryBackendError

    is_over = False
    """Whether the agent was stopped. SPADE lets its behaviours end their last run after that, without a memory."""

    @property
    def level(self) -> int:
        """The level at which a failed call is logged."""
        return logging.WARNING if self.is_over else logging.ERROR


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
