"""Threads that a memory works with: what blocks runs in them, and nothing in them may wait for that memory."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from memory_core.errors import StoreUnavailableError

T = TypeVar("T")

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


def keep_for_ever(value: object) -> None:
    """Never destroy what a parent process works with: a thread of it may hold locks in there that no child can free."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
