"""The core loop: one event loop for all memories of a process, reachable from any thread and any other loop.

A memory has database connections, caches and a writer task, all of which belong to one event loop. That loop runs in
a dedicated daemon thread, so calls can come from any loop, thread or framework, and no method is written twice: async
callers `await on_core(...)`, synchronous callers use `run_sync(...)` (`sync.py`).

The thread is a daemon because an unclosed memory must not keep the interpreter alive; acknowledged writes are on disk
already.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from memory_core.concurrency.threads import forget_work_of_parent, in_slices
from memory_core.errors import ClosedError, StoreUnavailableError

P = ParamSpec("P")
T = TypeVar("T")


OF_PARENT: Final = "this memory was opened before fork() and belongs to the parent process; make a new Memory here"

Answer = tuple[asyncio.Future[Any], object, BaseException | None]
"""A future, and the result or the error that resolves it."""


def answer(answers: Iterable[Answer]) -> None:
    """Resolve futures (see `promised`) with a result or an error each, from any thread; batched per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, deque[Answer]] = {}
    for one in answers:
        by_loop.setdefault(one[0].get_loop(), deque()).append(one)
    here = running_loop()
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed: nothing waits there any more
            (loop.call_soon if loop is here else loop.call_soon_threadsafe)(_keep, some, loop)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def settle(work: Callable[[], T], done: asyncio.Future[T]) -> None:
    """Run work in this thread and resolve a future with its result or error."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
        answer([(done, None, error)])
    else:
        answer([(done, result, None)])


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
            if not is_cancelled():
                raise StoreUnavailableError("the call was cancelled by the memory, and not by its caller") from None
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
            # The caller of what raised them gets them, and the loop goes on for everybody else.
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()
            while self._brief:
                self._brief.popleft()()


def _begin(begin: Callable[[asyncio.Future[T]], object], promise: asyncio.Future[T]) -> None:
    try:
        begin(promise)
    except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
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


def is_cancelled() -> bool:
    """True if this task was asked to stop; otherwise a `CancelledError` comes from what it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
