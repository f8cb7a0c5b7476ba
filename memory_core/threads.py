"""The threads of a memory: blocking work runs in them, nothing in them may wait for that memory, and a fork waits for
them."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, TypeVar

from memory_core.errors import StoreUnavailableError

T = TypeVar("T")

FORK_SECONDS: Final = 2.0
"""How long a fork waits for running work."""

_own = threading.local()


def mark_own_thread() -> None:
    """Mark this thread as one of a memory's own, in which `run_sync` refuses to wait for a memory."""
    _own.is_marked = True


def is_own_thread() -> bool:
    """Whether `mark_own_thread` was called in this thread."""
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


def keep_for_ever(value: object) -> None:
    """Never destroy an object of the parent process: its locks may be locked by a thread that the child lacks."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


class ForkGate:
    """Makes a fork wait until no thread is inside a library whose locks would stay locked in the child.

    `before_fork`, `after_in_parent` and `after_in_child` are for `os.register_at_fork`.
    """

    def __init__(self) -> None:
        self.was_idle = True
        """Whether no work was running when this process was forked."""
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._under_way = 0

    @contextmanager
    def work(self) -> Generator[None]:
        """Context manager for work that a fork has to wait for; it begins after a running fork."""
        # With a time limit: a signal handler, in the thread that is forking, may wait for this work.
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
        """Wait until no work is running, and block new work."""
        self._changed.acquire()
        self.was_idle = self._changed.wait_for(lambda: not self._under_way, FORK_SECONDS)

    def after_in_parent(self) -> None:
        """Go on."""
        self._changed.release()

    def after_in_child(self) -> None:
        """Start with no running work: the working threads are the parent's."""
        self._begin()
