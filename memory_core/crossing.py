"""Calls from other loops and threads to the core loop, and their results: the implementation behind `loop.py`."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Answer = tuple[asyncio.Future[Any], object, BaseException | None]
"""A future, and the result or the error that resolves it."""


def answer(answers: Iterable[Answer]) -> None:
    """Resolve futures (see `promised`) with a result or an error each, from any thread; batched per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, deque[Answer]] = {}
    for one in answers:
        by_loop.setdefault(one[0].get_loop(), deque()).append(one)
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed: nothing waits there any more
            loop.call_soon_threadsafe(_keep, some, loop)


def settle(work: Callable[[], T], done: asyncio.Future[T]) -> None:
    """Run work in this thread and resolve a future with its result or error."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
        answer([(done, None, error)])
    else:
        answer([(done, result, None)])


async def answer_with(work: Awaitable[T], promise: asyncio.Future[T]) -> None:
    """Resolve a future of any loop with the result or error of `work`."""
    try:
        result = await work
    except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
        answer([(promise, None, error)])
    else:
        answer([(promise, result, None)])


def _keep(answers: deque[Answer], here: asyncio.AbstractEventLoop) -> None:
    try:
        while answers:
            promise, result, error = answers.popleft()
            if promise.done():  # its caller was cancelled
                continue
            if error is None:
                promise.set_result(result)
            elif isinstance(error, asyncio.CancelledError):
                promise.cancel()
            else:
                promise.set_exception(error)
    finally:
        if answers:  # an interrupt (Ctrl-C) must not strand the others
            here.call_soon(_keep, answers, here)


class Crossing:
    """Calls from one loop to the core loop; calls made in the same turn of the loop cross together.

    Waking a loop in another thread costs a system call and contention for the interpreter lock. So a call waits for
    the end of its loop's turn, when all ready tasks have called, and so does a result (`CoreLoop.answer_soon`): many
    concurrent writers cost two wake-ups, and arrive at the writer as one group.
    """

    def __init__(
        self,
        home: weakref.ref[asyncio.AbstractEventLoop],
        core: asyncio.AbstractEventLoop,
        answer_soon: Callable[[Answer], None],
    ) -> None:
        self._home = home  # its callback ends this crossing
        self._core = core
        self._answer_soon = answer_soon
        self._waiting: deque[Callable[[], object]] = deque()
        self._is_waking = False

    async def call(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` on the core loop and return its result here."""
        home = asyncio.get_running_loop()
        call = _Call(work, home.create_future(), contextvars.copy_context(), self._answer_soon)
        self.begin(home, partial(call.start, self._core))
        try:
            return await call.result  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            if call.result.cancelled():  # otherwise the work itself was cancelled
                self._core.call_soon_threadsafe(call.cancel)
            raise

    def begin(self, home: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
        """Schedule a call on the core loop at the end of this loop's turn."""
        self._waiting.append(work)
        if not self._is_waking:
            self._is_waking = True
            home.call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        sent, self._waiting = self._waiting, deque()
        self._core.call_soon_threadsafe(_arrive, sent, self._core)


def _arrive(sent: deque[Callable[[], object]], here: asyncio.AbstractEventLoop) -> None:
    try:
        while sent:
            sent.popleft()()
    finally:
        if sent:  # an interrupt (Ctrl-C) must not strand the others
            here.call_soon(_arrive, sent, here)


@dataclass(slots=True, eq=False)
class _Call:
    """One call, and the future that waits for it in the calling loop. Lives on the core loop."""

    work: Coroutine[object, object, Any]
    result: asyncio.Future[Any]
    context: contextvars.Context
    answer_soon: Callable[[Answer], None]
    task: asyncio.Task[Any] | None = None

    def start(self, core: asyncio.AbstractEventLoop) -> None:
        """Begin the work, unless the caller was cancelled."""
        if self.result.cancelled():
            self.work.close()
            return
        self.task = core.create_task(self.work, context=self.context)
        self.task.add_done_callback(self._end)

    def cancel(self) -> None:
        """Stop the work if it has started."""
        if self.task is not None:
            self.task.cancel()

    def _end(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self.answer_soon((self.result, None, asyncio.CancelledError()))
        elif (error := task.exception()) is not None:
            self.answer_soon((self.result, None, error))
        else:
            self.answer_soon((self.result, task.result(), None))


class Blocking(Generic[T]):
    """One call whose caller is a waiting thread.

    A lock wakes the thread: `run_coroutine_threadsafe` and its future do the same at twice the cost.
    """

    def __init__(
        self, work: Coroutine[object, object, T], loop: asyncio.AbstractEventLoop, context: contextvars.Context
    ) -> None:
        self._work = work
        self._loop = loop
        self._context = context
        self._task: asyncio.Task[T] | None = None
        self.ended = threading.Lock()
        self.ended.acquire()

    def start(self) -> None:
        """Begin the work; called on the core loop."""
        self._task = self._loop.create_task(self._work, context=self._context)
        self._task.add_done_callback(lambda _: self.ended.release())

    def cancel(self) -> None:
        """Stop the work, because its caller no longer waits; called on the core loop."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # so not reported

    def result(self) -> T:
        """The result or the error of the finished work."""
        if self._task is None or self._task.cancelled():
            raise CancelledError  # of the work, not of the caller
        return self._task.result()
