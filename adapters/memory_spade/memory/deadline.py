"""A deadline for the calls of an agent's memory: one that hangs costs a call its memory, and never the agent."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, Final, TypeVar

from memory_core.adapting import reason_for_log
from memory_spade.memory.exceptions import MemoryBackendError, MemoryTimeoutError

logger = logging.getLogger(__name__)
T = TypeVar("T")

DEFAULT_SECONDS: Final = 5.0
"""How long an agent waits for a call of its memory by default."""
READING_SECONDS: Final = 60.0
"""When a late call that only reads is cancelled. Its answer is of no use, but what it loads (the index of a large
memory) helps the next call; and a connection that it holds should not be held for ever."""
MAX_LATE: Final = 1_000
"""Most late calls of an agent; if there are more, the oldest read is cancelled, or the oldest write if none reads."""
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


class Deadline:
    """Ends the wait for calls that take too long.

    A late call goes on in the background, so that what was to be remembered still is when the memory answers again.
    Nothing waits for it, nor for one that was cancelled: it may ignore that.

    Args:
        seconds: How long a call may take.
        who: Name of the agent, for the log.
    """

    def __init__(self, seconds: float, who: str) -> None:
        self.seconds = seconds
        self._who = who
        self._late: dict[asyncio.Future[Any], str] = {}
        self._timers: dict[asyncio.Future[Any], asyncio.TimerHandle] = {}
        """Of the late reads."""

    async def read(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call that only reads.

        Args:
            what: What the call does, for the log and the error.
            call: Makes the call.

        Raises:
            MemoryTimeoutError: It did not end in time.
            MemoryBackendError: The memory cancelled it.
        """
        return await self._within(what, call, until=READING_SECONDS)

    async def write(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """`read` for a call that may write: it goes on until it ends or `finish` ends it."""
        return await self._within(what, call, until=None)

    async def finish(self) -> None:
        """Wait for late calls once more, at most as long as for one call, and cancel those that do not end."""
        here = asyncio.get_running_loop()
        late = [call for call in self._late if call.get_loop() is here]
        if late:
            await asyncio.wait(late, timeout=self.seconds)
        for call in late:
            self._give_up(call)

    async def _within(self, what: str, call: Callable[[], Awaitable[T]], *, until: float | None) -> T:
        async def called() -> T:
            return await call()

        task = asyncio.create_task(called(), name="memory-core call")
        try:
            # Not `asyncio.timeout`, which waits for what it cancels.
            await asyncio.wait({task}, timeout=self.seconds)
        except asyncio.CancelledError:
            task.add_done_callback(_forget_error)
            task.cancel()
            raise
        if not task.done():
            self._leave(task, what, until)
            raise MemoryTimeoutError(f"{what} did not end within {self.seconds:g} s")
        if task.cancelled():  # by the memory: nobody has cancelled the agent
            raise MemoryBackendError(f"{what} was cancelled by the memory")
        return task.result()

    def _leave(self, task: asyncio.Task[Any], what: str, until: float | None) -> None:
        logger.error("the memory of %s does not answer: %s did not end within %g s", self._who, what, self.seconds)
        self._late[task] = what
        task.add_done_callback(self._ended)
        if until is not None:
            self._timers[task] = task.get_loop().call_later(until, self._give_up, task)
        if len(self._late) > MAX_LATE:
            self._give_up(next(iter(self._timers or self._late)))  # a write is lost if it is cancelled, a read is not

    def _give_up(self, task: asyncio.Future[Any]) -> None:
        what = self._forget(task)
        if what is not None:
            logger.error("a late call of the memory of %s is cancelled: %s", self._who, what)
            task.cancel()

    def _ended(self, task: asyncio.Future[Any]) -> None:
        error = _forget_error(task)
        what = self._forget(task)
        if what is None:
            return
        if error is not None or task.cancelled():
            reason = "cancelled" if error is None else reason_for_log(error)
            logger.error("a late call of the memory of %s failed: %s: %s", self._who, what, reason)
        else:
            logger.warning("a late call of the memory of %s has ended well: %s", self._who, what)

    def _forget(self, task: asyncio.Future[Any]) -> str | None:
        timer = self._timers.pop(task, None)
        if timer is not None:
            timer.cancel()  # it holds the task, and so the result
        return self._late.pop(task, None)


def _forget_error(task: asyncio.Future[Any]) -> BaseException | None:
    """The error of an ended call, which asyncio would otherwise print with its message, which may quote."""
    return None if task.cancelled() else task.exception()


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
