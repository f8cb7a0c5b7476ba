"""Long work in threads, which lets the core loop and brief work go first every few milliseconds.

The interpreter runs one thread at a time. A thread that needs it for long makes every other one wait some milliseconds
each time it needs it, and a search needs it again after every call of SQLite.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SLICE_SECONDS: Final = 0.003
"""How long work in a thread goes on before it lets others go first."""
_LONGEST_TURN_SECONDS: Final = 0.1
"""How long that work waits for a turn of the loop, which may have ended."""

_own = threading.local()


async def in_slices(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run Python code that takes long in a thread, and let this loop and brief work go first whenever it gives way."""
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
