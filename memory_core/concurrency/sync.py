"""Calls from code without `await`: a thread that blocks until the core loop has done the work."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Final, Generic, ParamSpec, TypeVar

from memory_core.concurrency.loop import CoreLoop, core_loop, running_loop
from memory_core.concurrency.threads import is_own_thread
from memory_core.errors import ClosedError, WrongThreadError
from memory_core.hints import not_a_call

P = ParamSpec("P")
T = TypeVar("T")

_ENDING: Final = "the interpreter is shutting down, so no memory can be used; acknowledged writes are on disk"


def run_sync(fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call an async method of this library from synchronous code and block until it is done.

    ```python
    from memory_core import Memory, run_sync

    ann = Memory(":memory:").bind(app="demo", user="ann")
    run_sync(ann.add, "Ann drinks jasmine tea")
    assert run_sync(ann.search, "tea")[0].record.text == "Ann drinks jasmine tea"
    ```

    It works from any thread, also inside a running event loop (which it blocks meanwhile), in signal handlers and in
    `__del__`. During interpreter shutdown nothing can do the work any more: closing a closed memory returns, every
    other call raises.

    Raises:
        WrongThreadError: Called on the core loop, or in another of the memory's threads, where it would wait forever.
        ClosedError: The interpreter is shutting down.
    """
    if not callable(fn):
        raise not_a_call(fn)
    if sys.is_finalizing():
        return _done_at_once(fn(*args, **kwargs))
    core = core_loop()
    if running_loop() is core.loop or is_own_thread():
        name = getattr(fn, "__name__", "the method")
        raise WrongThreadError(f"{name!r} was called synchronously on the core loop; use `await {name}(...)`")

    async def work() -> T:
        return await fn(*args, **kwargs)

    return _run(core, work())


def _done_at_once(work: Awaitable[T]) -> T:
    """The result of work that does not wait for anything."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    except RuntimeError as error:  # there is no running loop
        raise ClosedError(_ENDING) from error
    raise ClosedError(_ENDING)


def _run(core: CoreLoop, work: Coroutine[object, object, T]) -> T:
    """Run `work` from any thread except the loop's own, and block that thread until it is done."""
    call = _Blocking(work, core.loop, contextvars.copy_context())
    try:
        core.loop.call_soon_threadsafe(call.start)
        call.ended.acquire()
    except BaseException:  # Ctrl-C included: do not leave the work running unattended
        core.loop.call_soon_threadsafe(call.cancel)
        raise
    return call.result()


class _Blocking(Generic[T]):
    """One call whose caller is a waiting thread.

    A lock wakes the thread: `run_coroutine_threadsafe` and its future do the same, and a search of 300 records (without
    an embedder) takes a sixth more of the CPU.
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
