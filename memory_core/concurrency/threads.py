"""The threads of a memory: blocking work runs in them, and nothing in them may wait for that memory.

The interpreter runs one thread at a time. A long-running thread delays every other thread by some milliseconds each
time that thread needs the interpreter, and a search needs it again after every call of SQLite. So work in a thread
yields every few milliseconds to the core loop, to work that waits to be begun, and to other such work.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from memory_core.errors import MemoryCoreError, StoreUnavailableError

P = ParamSpec("P")
T = TypeVar("T")

SLICE_SECONDS: Final = 0.003
"""The time that work in a thread runs before it yields."""
MAX_FOREIGN: Final = 100
"""Most threads of the application's functions."""
_LONGEST_TURN_SECONDS: Final = 0.1
"""The time that this work waits for a turn of the loop, which may have stopped."""

_own = threading.local()


def mark_own_thread() -> None:
    """Mark this thread as one of a memory's own, in which `run_sync` refuses to wait for a memory."""
    _own.is_marked = True


def is_own_thread() -> bool:
    """True if `mark_own_thread` was called in this thread."""
    return getattr(_own, "is_marked", False)


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work, such as a file system call, in a new thread.

    Raises:
        StoreUnavailableError: No thread can be started: there are too many, or the interpreter is shutting down.
    """
    promise: Future[T] = Future()
    promise.set_running_or_notify_cancel()

    def run() -> None:
        mark_own_thread()
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
            promise.set_exception(error)
        else:
            promise.set_result(result)

    try:
        threading.Thread(target=run, name="memory-core file", daemon=True).start()
    except RuntimeError as error:
        raise StoreUnavailableError(f"the store cannot be used: {error}") from error
    return await asyncio.wrap_future(promise)


async def call_in_thread(
    what: str, work: Callable[[], T], *, refused: type[MemoryCoreError] = StoreUnavailableError
) -> T:
    """Call a blocking function of the application in a daemon thread of its own.

    In a pool, some calls that hang would leave no thread to others, such as the resolver of host names, and would
    keep the process from ending.

    Args:
        what: The work of the function, for the error.
        work: The function.
        refused: Raised if too many such calls are waiting, no thread can be started, or the function cancels itself.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except asyncio.CancelledError:  # nobody has cancelled who waits for it
            done.set_exception(refused(f"{what} was cancelled by itself"))
        except BaseException as error:  # noqa: BLE001  (any error belongs to the caller)
            done.set_exception(error)
        else:
            done.set_result(result)
        finally:
            with _Foreign.counting:
                _Foreign.running -= 1

    with _Foreign.counting:
        if _Foreign.running >= MAX_FOREIGN:
            raise refused(f"{what} is not begun: {MAX_FOREIGN} such calls are waiting already")
        _Foreign.running += 1
    try:
        threading.Thread(target=run, name="memory-core call", daemon=True).start()
    except RuntimeError as error:
        with _Foreign.counting:
            _Foreign.running -= 1
        raise refused(f"{what} is not begun: {error}") from error
    return await asyncio.wrap_future(done)


def keep_for_ever(value: object) -> None:
    """Never destroy an object of the parent process: its locks may be locked by a thread that the child lacks."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


async def in_slices(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run long Python code in a thread; it yields to this loop and to other work whenever it calls `yield_now`."""
    return await asyncio.to_thread(sliced(partial(work, *args, **kwargs)))


class AbandonedError(Exception):
    """Nobody waits any more for the work that `yield_now` was called in."""


def sliced(
    work: Callable[P, T], *, first: float = SLICE_SECONDS, is_abandoned: Callable[[], bool] | None = None
) -> Callable[P, T]:
    """`in_slices` for the caller's thread: work that yields to this loop when it calls `yield_now`.

    Args:
        work: The function.
        first: The length of the first slice in seconds.
        is_abandoned: If it returns true at the end of a slice, `yield_now` raises `AbandonedError`.
    """
    slices = _Slices(asyncio.get_running_loop(), first, is_abandoned)

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with slices.under_way():
            return work(*args, **kwargs)

    return run


def yield_now() -> None:
    """Yield to other work; long work calls it between its steps. Outside sliced work it does nothing."""
    slices: _Slices | None = getattr(_own, "slices", None)
    if slices is not None and time.thread_time() >= slices.ends:
        slices.give_way()


def note_waiting(change: int) -> None:
    """Count work that waits to be begun in a thread: long work yields to it."""
    with _Slices.counting:
        _Slices.waiting += change


def forget_work_of_parent() -> None:
    """Reset the counts in a forked child, which has none of its parent's threads."""
    _Slices.waiting = _Slices.begun = 0
    _Slices.counting = threading.Lock()
    _Foreign.running, _Foreign.counting = 0, threading.Lock()


class _Foreign:
    """Calls of the application's functions."""

    running = 0
    counting = threading.Lock()


class _Slices:
    """Work in one thread."""

    waiting = 0
    """Number of jobs that wait to be begun."""
    begun = 0
    """Number of running jobs."""
    counting = threading.Lock()

    def __init__(self, loop: asyncio.AbstractEventLoop, first: float, is_abandoned: Callable[[], bool] | None) -> None:
        self._loop = loop
        self._length = first
        """The length of the current slice, in seconds of this thread's processor time."""
        self._is_abandoned = is_abandoned
        self.ends = 0.0
        """Its end."""

    @contextmanager
    def under_way(self) -> Generator[None]:
        with self.counting:
            _Slices.begun += 1
        _own.slices, self.ends = self, time.thread_time() + self._length
        try:
            yield
        finally:
            _own.slices = None
            with self.counting:
                _Slices.begun -= 1

    def give_way(self) -> None:
        """Let what waits and other work go first, as long as this slice has taken."""
        if self._is_abandoned is not None and self._is_abandoned():
            raise AbandonedError
        worked = self._length + time.thread_time() - self.ends
        turn = threading.Event()
        try:
            self._loop.call_soon_threadsafe(turn.set)
        except RuntimeError:  # the loop has stopped, and nothing waits any more
            return
        turn.wait(_LONGEST_TURN_SECONDS)
        until = time.perf_counter() + worked
        while self.waiting and time.perf_counter() < until:
            time.sleep(SLICE_SECONDS / 10)
        time.sleep(worked * (self.begun - 1))  # as if they took turns
        self._length = SLICE_SECONDS
        self.ends = time.thread_time() + SLICE_SECONDS
