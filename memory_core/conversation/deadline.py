"""A deadline for calls of a memory: one that hangs costs a call its memory, and never the caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from memory_core.concurrency.threads import call_in_thread
from memory_core.conversation import limits
from memory_core.errors import MemoryCoreError, StorageError, StoreUnavailableError, reason_for_log
from memory_core.values.checks import check_seconds
from memory_core.values.printable import one_line

logger = logging.getLogger(__name__)
T = TypeVar("T")


class LateError(StoreUnavailableError, TimeoutError):
    """A call of the memory did not end in time, which is logged. If it writes, it may still do so; repeat it freely."""


class NotStoredError(StorageError):
    """Something that was said could not be stored and would fail again, which is logged."""


class Deadline:
    """Ends the wait for calls that take too long.

    A late call goes on in the background, so that what was to be remembered still is when the memory answers again.
    Nothing waits for it, nor for one that was cancelled: it may ignore that.

    Args:
        seconds: The time that a call may take.
        who: The owner of the memory, for the log.

    Raises:
        InvalidInputError: `seconds` is not above 0 (also a `ValueError`).
    """

    def __init__(self, seconds: float, who: str) -> None:
        self.seconds = check_seconds("timeout", seconds)
        self.is_over = False
        """True if they have stopped: that calls of their memory fail then is to be expected."""
        self._who = one_line(who)
        self._writing: set[asyncio.Future[Any]] = set()
        """Late ones included."""
        self._late: dict[asyncio.Future[Any], str] = {}
        self._timers: dict[asyncio.Future[Any], asyncio.TimerHandle] = {}
        """Of the late reads."""

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same deadline: copies of an adapter share the calls that go on."""
        return self

    async def read(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call that only reads.

        Args:
            what: The work of the call, for the log and the error.
            call: Makes the call.

        Raises:
            LateError: It did not end in time.
            StoreUnavailableError: The memory cancelled it.
        """
        return await self._within(what, call, until=limits.READING_SECONDS)

    async def write(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """`read` for a call that may write: it goes on until it ends or `finish` ends it."""
        return await self._within(what, call, until=None)

    @contextmanager
    def spared(
        self, lack: str, errors: type[Exception] = MemoryCoreError, *, but: tuple[type[Exception], ...] = ()
    ) -> Generator[None]:
        """Go on if the memory fails, which is logged: a message is answered with or without a memory.

        Args:
            lack: The part that they go on without, for the log.
            errors: `Exception` if functions of the application are called, too, which may raise anything.
            but: The errors that are raised all the same.
        """
        try:
            yield
        except (LateError, NotStoredError):  # logged
            return
        except but:
            raise
        except errors as error:
            reason = reason_for_log(error)  # without the traceback, whose messages may quote
            logger.log(logging.WARNING if self.is_over else logging.ERROR, "%s: %s", lack, reason)

    async def ask(self, what: str, function: Callable[[], T]) -> T:
        """`read` for a blocking function of the application; it is called in a thread, so that nobody else waits."""
        return await self.read(what, lambda: call_in_thread(what, function))

    async def finish(self) -> None:
        """Wait for writes and late calls, at most as long as for one call, and cancel late ones that do not end."""
        here = asyncio.get_running_loop()
        going_on = {call for call in (*self._writing, *self._late) if call.get_loop() is here}
        if going_on:
            await asyncio.wait(going_on, timeout=self.seconds)
        for call in going_on:
            self._give_up(call)

    async def _within(self, what: str, call: Callable[[], Awaitable[T]], *, until: float | None) -> T:
        async def called() -> T:
            return await call()

        task = asyncio.create_task(called(), name="memory-core call")
        if until is None:
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)
        try:
            # Not `asyncio.timeout`, which waits for what it cancels.
            await asyncio.wait({task}, timeout=self.seconds)
        except asyncio.CancelledError:
            task.add_done_callback(_forget_error)
            task.cancel()
            raise
        if not task.done():
            self._leave(task, what, until)
            raise LateError(f"{what} did not end within {self.seconds:g} s")
        if task.cancelled():  # by the memory: nobody has cancelled the agent
            raise StoreUnavailableError(f"{what} was cancelled by the memory")
        return task.result()

    def _leave(self, task: asyncio.Task[Any], what: str, until: float | None) -> None:
        logger.error("the memory of %s does not answer: %s did not end within %g s", self._who, what, self.seconds)
        self._late[task] = what
        task.add_done_callback(self._ended)
        if until is not None:
            self._timers[task] = task.get_loop().call_later(until, self._give_up, task)
        if len(self._late) > limits.MAX_LATE:
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
