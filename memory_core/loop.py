"""One event loop for all memories of a process, reachable from any thread and any other loop.

A memory holds database connections, caches and a writer task, and all of them belong to one event
loop. That loop runs in a daemon thread of its own, so it does not matter which loop, thread or
framework a call comes from, and no method is written twice: async callers `await on_core(...)`,
sync callers `run_sync(...)`.

The thread is a daemon because an unclosed memory must not keep the interpreter alive: whatever was
acknowledged is on disk already.
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

from memory_core.crossing import Answer, Blocking, Crossing, answer, settle
from memory_core.errors import ClosedError, WrongThreadError
from memory_core.hints import not_a_call
from memory_core.threads import is_own_thread

_ENDING: Final = "the interpreter is ending, and memories with it; what was acknowledged is on disk"

P = ParamSpec("P")
T = TypeVar("T")


OF_PARENT: Final = "this memory was opened before fork() and belongs to the parent process; make a new Memory here"


class CoreLoop:
    """The event loop that does all the work, in a thread of its own, for one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.loop.set_debug(False)  # whatever the environment asks for: such lines quote what passes through a loop
        self._crossings: dict[int, Crossing] = {}
        """By the `id` of a loop that lives."""
        self._answers: list[Answer] = []
        """Of work that has ended in this turn of the loop."""
        self._brief: deque[Callable[[], object]] = deque()
        """What is done between this turn and the next."""
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
        """Carry out `work` from any thread but the loop's own, which stands still until it is done."""
        call = Blocking(work, self.loop, contextvars.copy_context())
        try:
            self.loop.call_soon_threadsafe(call.start)
            call.ended.acquire()
        except BaseException:  # Ctrl-C included: do not leave the work running unattended
            self.loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    def crossing(self, home: asyncio.AbstractEventLoop) -> Crossing:
        """The way from another loop, which is the one running in this thread, to this one."""
        crossing = self._crossings.get(id(home))
        if crossing is None:
            gone = partial(self._crossings.pop, id(home))
            crossing = self._crossings[id(home)] = Crossing(
                weakref.ref(home, lambda _: gone()), self.loop, self.answer_soon
            )
        return crossing

    def answer_soon(self, one: Answer) -> None:
        """Keep a promise at the end of this turn, together with those of all work that ends in it; on this loop."""
        self._answers.append(one)
        if len(self._answers) == 1:
            self.loop.call_soon(self._send_answers)

    def between_turns(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do something brief that blocks, in this loop's thread, but while the loop does not run; call it on this loop.

        Waking another thread and being woken by it would take longer than the work, and detectors of blocking calls,
        which look for a running loop, rightly report nothing: how long this loop may stand still is decided here.
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
    except Exception as error:  # noqa: BLE001  (whatever it was, it is the caller's)
        answer([(promise, None, error)])


_lock = threading.RLock()  # a signal handler may need the loop while the thread that it interrupts is starting it
_core: CoreLoop | None = None


def core_loop() -> CoreLoop:
    """The process's core loop, started at the first call and again in a forked child.

    Call it from a constructor rather than from inside a coroutine where blocking calls are policed:
    starting a thread waits for that thread.
    """
    global _core  # noqa: PLW0603  (one loop per process is the point of this module)
    if _core is not None:
        return _core
    with _lock:
        if _core is not None:
            return _core
        fresh = CoreLoop()
        fresh.start()
        if _core is None:  # else a signal handler has started one meanwhile
            _core = fresh
        return _core


def _start_over() -> None:
    """A child has none of its parent's threads; the lock may have been copied while one of them held it."""
    global _core, _lock
    if _core is not None:
        for task in asyncio.all_tasks(_core.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  (they go on in the parent)
    _core, _lock = None, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)


async def on_core(fn: Callable[P, Coroutine[object, object, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `fn(...)` on the core loop, from whatever loop this is; a plain await when it is that one.

    Cancelling the caller cancels the work, up to the point where a write has been handed to the writer:
    from there on it is carried out whether or not anybody waits.
    """
    core, home = core_loop(), asyncio.get_running_loop()
    if home is core.loop:
        return await fn(*args, **kwargs)
    return await core.crossing(home).call(fn(*args, **kwargs))


async def off_loop(is_long: bool, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:  # noqa: FBT001
    """`fn(...)`: in a thread if it would hold the loop for more than a millisecond or so."""
    return await asyncio.to_thread(fn, *args, **kwargs) if is_long else fn(*args, **kwargs)


def promised(begin: Callable[[asyncio.Future[T]], object]) -> asyncio.Future[T]:
    """A future of this loop, and `begin` called with it on the core loop, where that needs no task of its own.

    Whoever does the work looks whether it is `done` (its caller was cancelled) and hands the outcome to `answer`.
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

    It works from any thread, also inside a running event loop (which then stands still meanwhile), in signal handlers
    and in `__del__`. Once the interpreter is ending nothing is left that could do the work: closing what is closed
    already returns, all else raises.

    Raises:
        WrongThreadError: Called on the core loop, or in another thread that a memory works with, where waiting would
            never end.
        ClosedError: The interpreter is ending.
    """
    if not callable(fn):
        raise not_a_call(fn)
    if sys.is_finalizing():
        return _done_at_once(fn(*args, **kwargs))
    core = core_loop()
    if _running_loop() is core.loop or is_own_thread():
        name = getattr(fn, "__name__", "the method")
        raise WrongThreadError(f"{name!r} was called synchronously on the memory's own loop; use `await {name}(...)`")

    async def work() -> T:
        return await fn(*args, **kwargs)

    return core.run(work())


def _done_at_once(work: Awaitable[T]) -> T:
    """The result of work that has nothing to wait for."""
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
