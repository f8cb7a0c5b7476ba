"""The core loop: one event loop for all memories of a process, reachable from any thread and any other loop.

A memory has database connections, caches and a writer task, all of which belong to one event loop. That loop runs in
a dedicated daemon thread, so calls can come from any loop, thread or framework, and no method is written twice: async
callers `await on_core(...)`, synchronous callers use `run_sync(...)`.

The thread is a daemon because an unclosed memory must not keep the interpreter alive; acknowledged writes are on disk
already.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Final, ParamSpec, TypeVar

from memory_core.errors import ClosedError, WrongThreadError
from memory_core.hints import not_a_call
from memory_core.loop_calls import Answer, Blocking, Crossing, answer, settle
from memory_core.threads import forget_work_of_parent, in_slices, is_own_thread

_ENDING: Final = "the interpreter is shutting down, so no memory can be used; acknowledged writes are on disk"

P = ParamSpec("P")
T = TypeVar("T")


OF_PARENT: Final = "this memory was opened before fork() and belongs to the parent process; make a new Memory here"


class CoreLoop:
    """The event loop that does all the work of one process, in a dedicated thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.loop.set_debug(False)  # even if the environment enables it: debug lines quote the arguments of calls
        self._crossings: dict[int, Crossing] = {}
        """Keyed by the `id` of a running loop."""
        self._answers: list[Answer] = []
        """Results of work that has finished in this turn of the loop."""
        self._brief: deque[Callable[[], object]] = deque()
        """Work to do between this turn and the next."""
        self._thread = threading.Thread(target=self._main, name="memory-core", daemon=True)

    def start(self) -> None:
        """Start the thread and return once its loop accepts work."""
        ready = threading.Event()
        self.loop.call_soon(ready.set)
        self._thread.start()
        ready.wait()

    def submit(self, work: Coroutine[object, object, T]) -> Future[T]:
        """Schedule `work` from any thread."""
        if self.pid != os.getpid():
            work.close()
            raise ClosedError(OF_PARENT)
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` from any thread except the loop's own, and block that thread until it is done."""
        call = Blocking(work, self.loop, contextvars.copy_context())
        try:
            self.loop.call_soon_threadsafe(call.start)
            call.ended.acquire()
        except BaseException:  # Ctrl-C included: do not leave the work running unattended
            self.loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    def crossing(self, home: asyncio.AbstractEventLoop) -> Crossing:
        """The crossing from the loop running in this thread to this one."""
        crossing = self._crossings.get(id(home))
        if crossing is None:
            gone = partial(self._crossings.pop, id(home))
            crossing = self._crossings[id(home)] = Crossing(
                weakref.ref(home, lambda _: gone()), self.loop, self.answer_soon
            )
        return crossing

    def answer_soon(self, one: Answer) -> None:
        """Resolve a future at the end of this turn, together with all others of this turn; call it on this loop."""
        self._answers.append(one)
        if len(self._answers) == 1:
            self.loop.call_soon(self._send_answers)

    def between_turns(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run brief blocking work in this loop's thread while the loop itself is paused; call it on this loop.

        Waking another thread and being woken by it would take longer than the work. Detectors of blocking calls, which
        look for a running loop, rightly report nothing: the pause is deliberate and bounded.
        """
        done: asyncio.Future[T] = self.loop.create_future()
        self._brief.append(partial(settle, work, done))
        if len(self._brief) == 1:
            self.loop.stop()  # after this turn; `_main` goes on with the next
        return done

    def _send_answers(self) -> None:
        sent, self._answers = self._answers, []
        answer(sent)

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            self.loop.run_forever()
            while self._brief:
                self._brief.popleft()()


def _begin(begin: Callable[[asyncio.Future[T]], object], promise: asyncio.Future[T]) -> None:
    try:
        begin(promise)
    except Exception as error:  # noqa: BLE001  (any error belongs to the caller)
        answer([(promise, None, error)])


_lock = threading.RLock()  # a signal handler may need the loop while the thread that it interrupts is starting it
_core: CoreLoop | None = None


def core_loop() -> CoreLoop:
    """The process's core loop, started at the first call and again in a forked child.

    Where blocking calls are detected, call it in a constructor rather than in a coroutine: starting a thread waits for
    that thread.
    """
    global _core  # noqa: PLW0603  (one loop per process is the point of this module)
    if _core is not None:
        return _core
    with _lock:
        if _core is not None:
            return _core
        fresh = CoreLoop()
        fresh.start()
        if _core is None:  # else a signal handler has started it meanwhile
            _core = fresh
        return _core


def _start_over() -> None:
    """A child has none of its parent's threads; the lock may have been copied while a thread had locked it."""
    global _core, _lock
    if _core is not None:
        for task in asyncio.all_tasks(_core.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  (they go on in the parent)
    _core, _lock = None, threading.RLock()
    forget_work_of_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)


async def on_core(fn: Callable[P, Coroutine[object, object, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `fn(...)` on the core loop, from any loop; a plain await if this is the core loop.

    Cancelling the caller cancels the work, until a write has been handed to the writer: after that it is completed
    even if its caller was cancelled.
    """
    core, home = core_loop(), asyncio.get_running_loop()
    if home is core.loop:
        return await fn(*args, **kwargs)
    return await core.crossing(home).call(fn(*args, **kwargs))


async def off_loop(is_long: bool, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:  # noqa: FBT001
    """Call `fn(...)`, in a thread if it would block the loop for more than about a millisecond."""
    return await in_slices(fn, *args, **kwargs) if is_long else fn(*args, **kwargs)


def promised(begin: Callable[[asyncio.Future[T]], object]) -> asyncio.Future[T]:
    """A future of this loop; `begin` is called with it on the core loop, without creating a task there.

    The code that does the work checks whether the future is `done` (its caller was cancelled), and passes the result
    to `answer`.
    """
    core, home = core_loop(), asyncio.get_running_loop()
    promise: asyncio.Future[T] = home.create_future()
    if home is core.loop:
        _begin(begin, promise)
    else:
        core.crossing(home).begin(home, partial(_begin, begin, promise))
    return promise


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
    if _running_loop() is core.loop or is_own_thread():
        name = getattr(fn, "__name__", "the method")
        raise WrongThreadError(f"{name!r} was called synchronously on the core loop; use `await {name}(...)`")

    async def work() -> T:
        return await fn(*args, **kwargs)

    return core.run(work())


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


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
