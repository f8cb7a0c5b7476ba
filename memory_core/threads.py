"""Threads that a memory works with: what blocks or takes long runs in them, nothing in them may wait for that memory,
and a fork has to wait for them."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from memory_core.errors import StoreUnavailableError

P = ParamSpec("P")
T = TypeVar("T")

FORK_SECONDS: Final = 2.0
"""How long a fork waits for work that is under way."""

SLICE_SECONDS: Final = 0.003
"""How long work in a thread goes on before it lets others go first."""
_LONGEST_TURN_SECONDS: Final = 0.1
"""How long that work waits for a turn of the loop, which may have ended."""

_own = threading.local()


def mark_own_thread() -> None:
    """Say that this thread does a memory's work, so that `run_sync` refuses to wait for a memory in it."""
    _own.is_marked = True


def is_own_thread() -> bool:
    """Whether `mark_own_thread` was called in this thread."""
    return getattr(_own, "is_marked", False)


async def in_thread(work: Callable[[], T]) -> T:
    """Run something that blocks, such as a question to the file system, in a thread that lives as long.

    Raises:
        StoreUnavailableError: There is no thread to be had, because there are too many or the interpreter is ending.
    """
    promise: Future[T] = Future()
    promise.set_running_or_notify_cancel()

    def run() -> None:
        mark_own_thread()
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  (whatever it was, it is the caller's)
            promise.set_exception(error)
        else:
            promise.set_result(result)

    try:
        threading.Thread(target=run, name="memory-core file", daemon=True).start()
    except RuntimeError as error:
        raise StoreUnavailableError(f"the store cannot be used: {error}") from error
    return await asyncio.wrap_future(promise)


async def in_slices(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run Python code that takes long in a thread, and let this loop and brief work go first whenever it gives way.

    The interpreter runs one thread at a time. One that needs it for long makes every other one wait some milliseconds
    each time it needs it, and a search needs it again after every call of SQLite.
    """
    return await asyncio.to_thread(sliced(partial(work, *args, **kwargs)))


def sliced(work: Callable[P, T]) -> Callable[P, T]:
    """`in_slices` for a thread of one's own: work that lets this loop go first when it gives way."""
    slices = _Slices(asyncio.get_running_loop())

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with slices.under_way():
            return work(*args, **kwargs)

    return run


def give_way() -> None:
    """Let others go first; for long work to call between two pieces of it. Elsewhere it does nothing."""
    slices: _Slices | None = getattr(_own, "slices", None)
    if slices is not None:
        slices.give_way()


@contextmanager
def brief_work() -> Generator[None]:
    """Around brief work in some thread, on the core loop: long work lets it go first."""
    _Slices.brief += 1
    try:
        yield
    finally:
        _Slices.brief -= 1


def forget_work_of_parent() -> None:
    """For a forked child, which has none of the threads of its parent."""
    _Slices.brief = _Slices.long = 0
    _Slices.counting = threading.Lock()


class _Slices:
    """Long work in one thread."""

    brief = 0
    """How many wait for brief work; counted on the core loop."""
    long = 0
    """How much long work is under way."""
    counting = threading.Lock()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._began = 0.0
        """In seconds of this thread's work."""

    @contextmanager
    def under_way(self) -> Generator[None]:
        with self.counting:
            _Slices.long += 1
        _own.slices, self._began = self, time.thread_time()
        try:
            yield
        finally:
            _own.slices = None
            with self.counting:
                _Slices.long -= 1

    def give_way(self) -> None:
        worked = time.thread_time() - self._began
        if worked < SLICE_SECONDS:
            return
        turn = threading.Event()
        try:
            self._loop.call_soon_threadsafe(turn.set)
        except RuntimeError:  # the loop has ended, and nobody waits any more
            return
        turn.wait(_LONGEST_TURN_SECONDS)
        until = time.perf_counter() + worked
        while self.brief and time.perf_counter() < until:
            time.sleep(SLICE_SECONDS / 10)
        time.sleep(worked * (self.long - 1))  # as if they took turns
        self._began = time.thread_time()


def keep_for_ever(value: object) -> None:
    """Never destroy what a parent process works with: a thread of it may hold locks in there that no child can free."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


class ForkGate:
    """Lets a fork wait until no thread is inside of a library whose locks would stay locked in the child.

    `before_fork`, `after_in_parent` and `after_in_child` are for `os.register_at_fork`.
    """

    def __init__(self) -> None:
        self.was_idle = True
        """Whether nothing was under way as this process was forked."""
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._under_way = 0

    @contextmanager
    def work(self) -> Generator[None]:
        """Around work that a fork has to wait for; begins after a fork that is under way."""
        # Not for ever: a signal handler, in the thread that is forking, may wait for this work.
        is_counted = self._changed.acquire(timeout=2 * FORK_SECONDS)
        if is_counted:
            self._under_way += 1
            self._changed.release()
        try:
            yield
        finally:
            if is_counted:
                with self._changed:
                    self._under_way -= 1
                    self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until nothing is under way, and let nothing begin."""
        self._changed.acquire()
        self.was_idle = self._changed.wait_for(lambda: not self._under_way, FORK_SECONDS)

    def after_in_parent(self) -> None:
        """Go on."""
        self._changed.release()

    def after_in_child(self) -> None:
        """Begin with nothing under way: the threads that were at work are the parent's."""
        self._begin()
