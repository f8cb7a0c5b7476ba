"""Counts the work of an operation: SQL statements, crossings between threads, and Python calls; never time.

The seams are public ones of Python, so nothing is replaced and nothing is patched:

- The audit event `sqlite3.connect/handle` names every new connection, and `set_trace_callback` then reports what SQLite
  runs on it. FTS5's own statements are left out (SQLite marks them as comments): they differ between its versions.
- `threading.setprofile` reports the calls of every thread that is started later. So make a `Counter` before the first
  memory, in a process that does nothing else.
"""

from __future__ import annotations

import dis
import gc
import sqlite3
import sys
import threading
from asyncio import BaseEventLoop
from collections import Counter as Tally
from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple

from memory_core.storage.sqlite.raw_connection import RawConnection

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (f"{ROOT / 'memory_core'}/", f"{ROOT / 'adapters'}/")
"""Calls of functions in these folders are counted."""
STAND_INS: Final = ("/testing/", "/testing.py", "/embedding/hashing.py")
"""Parts of these paths stand for what belongs to the application, such as its models, and are left out."""
INLINED: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})
"""From Python 3.12 on, these are no functions."""

WAKE: Final = BaseEventLoop.call_soon_threadsafe.__code__
CROSSINGS: Final = {
    WAKE: "wake a loop from another thread",
    RawConnection.queue.__code__: "queue work in a connection's thread",
    RawConnection.call.__code__: "call a connection's thread",
    ThreadPoolExecutor.submit.__code__: "submit to an executor",
    threading.Thread.start.__code__: "start a thread",
}

BY_CHANCE: Final = frozenset(
    {
        ("threads.py", "yield_now"),  # long work yields after some milliseconds
        ("group_commit.py", "_serve"),  # the next write has arrived before the commit has quite ended
        ("thread.py", "_adjust_thread_count"),  # no thread of the executor is idle yet
    }
)
"""File and name of functions whose crossings are not counted, because they depend on how fast the machine is."""


class Counts(NamedTuple):
    """The work of one operation."""

    statements: int
    """SQL statements that SQLite ran; one of `executemany` counts once for every row."""
    writes: int
    """Transactions that write, each of which waits for the disk at its end."""
    crossings: int
    """Jobs handed to another thread, and loops woken from another thread."""
    calls: int
    """Calls of functions of this repository; a coroutine or a generator counts once, however often it goes on."""

    def less(self, other: Counts) -> Counts:
        """The difference."""
        return Counts(*(one - two for one, two in zip(self, other, strict=True)))


class Counter:
    """Counts in all threads that are started after it was made, and in this one."""

    def __init__(self) -> None:
        self._counting = False
        self._known: dict[int, _Function] = {}
        """By `id` of the code, because the hash of code is slow; the function keeps the code."""
        self._called: deque[str] = deque()
        self._crossed: deque[str] = deque()
        self._ran: deque[str] = deque()
        self._connections: deque[sqlite3.Connection] = deque()
        """Connections that are just being made, which cannot be watched yet."""
        self._unseen = threading.local()
        sys.addaudithook(self._heard)
        threading.setprofile(self._profiled)
        sys.setprofile(self._profiled)

    def start(self) -> None:
        """Count from now on. Nothing is collected meanwhile: finalizers would run at any moment."""
        gc.collect()
        gc.disable()
        for found in (self._called, self._crossed, self._ran):
            found.clear()
        self._counting = True

    def stop(self) -> Counts:
        """What was counted since `start`."""
        self._counting = False
        gc.enable()
        writes = sum(statement.startswith("BEGIN IMMEDIATE") for statement in self._ran)
        return Counts(len(self._ran), writes, len(self._crossed), len(self._called))

    def details(self) -> str:
        """What was counted last, the most frequent first, for whoever looks for the cause of a rise."""
        parts = (("statements", self._ran), ("crossings", self._crossed), ("calls", self._called))
        lines = [
            f"{number:8,} {name}\n" if at else f"{title}\n"
            for title, found in parts
            for at, (name, number) in enumerate([("", 0), *Tally(found).most_common(60)])
        ]
        return "".join(lines)

    @contextmanager
    def unseen(self) -> Generator[None]:
        """Nothing in this block counts, and no connection that it makes in this thread."""
        self._unseen.is_on = True
        sys.setprofile(None)
        try:
            yield
        finally:
            self._unseen.is_on = False
            sys.setprofile(self._profiled)

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if event != "sqlite3.connect/handle" or getattr(self._unseen, "is_on", False):
            return
        (connection,) = arguments
        assert isinstance(connection, sqlite3.Connection)
        self._connections.append(connection)

    def _profiled(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "c_return" and argument is sqlite3.connect and self._connections:
            self._connections.popleft().set_trace_callback(self._traced)
        elif event == "call" and self._counting:
            function = self._known.get(id(frame.f_code)) or self._function(frame.f_code)
            if function.is_counted and frame.f_lasti <= function.start:
                self._called.append(function.name)
            elif function.crossing is not None and not _is_by_chance(frame):
                self._crossed.append(function.crossing)

    def _function(self, code: CodeType) -> _Function:
        return self._known.setdefault(id(code), _Function(code))

    def _traced(self, statement: str) -> None:
        if self._counting and not statement.startswith("--"):
            self._ran.append(" ".join(statement.split())[:100])


class _Function:
    """What has to be known of a function at each of its calls."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        path = code.co_filename
        self.is_counted = (
            path.startswith(PACKAGES) and code.co_name not in INLINED and not any(part in path for part in STAND_INS)
        )
        self.crossing = CROSSINGS.get(code)
        self.name = f"{path.removeprefix(f'{ROOT}/')} {code.co_qualname}"
        self.start = self._start(code) if self.is_counted else -1
        """Where the last instruction is at the beginning; it is behind that where a coroutine goes on."""

    @staticmethod
    def _start(code: CodeType) -> int:
        return next((each.offset for each in dis.get_instructions(code) if each.opname == "RESUME"), -1)


def _is_by_chance(frame: FrameType) -> bool:
    """Whether a crossing depends on how fast the machine is."""
    caller = frame.f_back
    return caller is not None and (Path(caller.f_code.co_filename).name, caller.f_code.co_name) in BY_CHANCE
