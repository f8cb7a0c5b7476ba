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
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from memory_core.errors import ClosedError, WrongThreadError

P = ParamSpec("P")
T = TypeVar("T")


class CoreLoop:
    """The event loop that does all the work, in a thread of its own, for one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="memory-core", daemon=True)

    def start(self) -> None:
        """Start the thread and return once its loop accepts work."""
        ready = threading.Event()
        self.loop.call_soon(ready.set)
        self._thread.start()
        ready.wait()

    def submit(self, work: Coroutine[object, object, T]) -> Future[T]:
        """Schedule `work` from any thread but the loop's own."""
        if self.pid != os.getpid():
            work.close()
            raise ClosedError("this memory was opened before fork(); open it again in the child process")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


_lock = threading.Lock()
_core: CoreLoop | None = None


def core_loop() -> CoreLoop:
    """The process's core loop, started at the first call and again in a forked child.

    Call it from a constructor rather than from inside a coroutine where blocking calls are policed:
    starting a thread waits for that thread.
    """
    global _core  # noqa: PLW0603  (one loop per process is the point of this module)
    core = _core
    if core is not None and core.pid == os.getpid():
        return core
    with _lock:
        if _core is None or _core.pid != os.getpid():
            fresh = CoreLoop()
            fresh.start()
            _core = fresh
        return _core


def _forget_lock() -> None:
    """A fork may copy the lock while a thread that does not exist in the child held it."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


async def on_core(fn: Callable[P, Coroutine[object, object, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `fn(...)` on the core loop, from whatever loop this is; a plain await when it is that one.

    Cancelling the caller cancels the work, up to the point where a write has been handed to the writer:
    from there on it is carried out whether or not anybody waits.
    """
    core = core_loop()
    if asyncio.get_running_loop() is core.loop:
        return await fn(*args, **kwargs)
    return await asyncio.wrap_future(core.submit(fn(*args, **kwargs)))


def run_sync(fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call an async method of this library from synchronous code and block until it is done.

    ```python
    from memory_core import Memory, run_sync

    ann = Memory(":memory:").bind(app="demo", user="ann")
    run_sync(ann.add, "Ann drinks jasmine tea")
    assert run_sync(ann.search, "tea")[0].record.text == "Ann drinks jasmine tea"
    ```

    It works from any thread, also inside a running event loop (which then stands still meanwhile).

    Raises:
        WrongThreadError: Called on the core loop itself, where waiting would never end.
    """
    core = core_loop()
    if _running_loop() is core.loop:
        name = getattr(fn, "__name__", "the method")
        raise WrongThreadError(f"{name!r} was called synchronously on the memory's own loop; use `await {name}(...)`")

    async def work() -> T:
        return await fn(*args, **kwargs)

    future = core.submit(work())
    try:
        return future.result()
    except BaseException:  # Ctrl-C included: do not leave the work running unattended
        future.cancel()
        raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
