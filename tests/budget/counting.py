"""Counts the work of an operation: SQL statements, crossings between threads, and Python calls. It reads no clock.

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

NOWHERE: Final = -2
"""Before the first instruction."""
BY_CHANCE: Final = frozenset(
    {
        ("threads.py", "give_way"),  # long work yields after some milliseconds
        ("group_commit.py", "_serve"),  # the next write has arrived before the commit has quite ended
        ("thread.py", "_adjust_thread_count"),  # no thread of the executor is idle yet
    }
)
"""File and name of functions whose crossings are not counted, because they depend on how fast the machine is."""


class Counts(NamedTuple):
    """The work of one operation, in figures."""

    statements: int
    """SQL statements that SQLite ran; one of `executemany` counts once for every row."""
    writes: int
    """Transactions that write, each of which waits for the disk at its end."""
    crossings: int
    """Jobs handed to another thread, and loops woken from another thread."""
    calls: int
    """Calls of functions of this repository; a coroutine or a generator counts once, however often it goes on."""


class Work(NamedTuple):
    """The work of one operation: what was done how often."""

    statements: Tally[str]
    crossings: Tally[str]
    calls: Tally[str]

    def less(self, other: Work) -> Work:
        """This without the other."""
        return Work(*(one - two for one, two in zip(self, other, strict=True)))

    def counts(self) -> Counts:
        """Its figures."""
        writes = sum(number for name, number in self.statements.items() if name.startswith("BEGIN IMMEDIATE"))
        return Counts(self.statements.total(), writes, self.crossings.total(), self.calls.total())

    def details(self) -> str:
        """The most frequent first, for whoever looks for the cause of a rise."""
        return "\n".join(
            line
            for title, found in zip(self._fields, self, strict=True)
            for line in (title, *(f"{number:8,} {name}" for name, number in found.most_common()))
        )


class Counter:
    """Counts in all threads that are started after it was made, and in this one."""

    def __init__(self) -> None:
        self._counting = False
        self._known: dict[int, _Function] = {}
        """By `id` of the code, because the hash of code is slow; the function keeps the code."""
        self._ran: deque[str] = deque()
        self._crossed: deque[str] = deque()
        self._called: deque[str] = deque()
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
        for found in (self._ran, self._crossed, self._called):
            found.clear()
        self._counting = True

    def stop(self) -> Work:
        """What was done since `start`."""
        self._counting = False
        gc.enable()
        return Work(Tally(self._ran), Tally(self._crossed), Tally(self._called))

    @contextmanager
    def unseen(self) -> Generator[None]:
        """Nothing that this thread does in this block counts, nor does any connection that it makes."""
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
            if frame.f_lasti > function.start:  # it goes on, or does not matter
                return
            if function.is_counted:
                self._called.append(function.name)
            if function.crossing is not None and not _is_by_chance(frame):
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
        self.start = _start(code) if self.is_counted or self.crossing is not None else NOWHERE
        """The last instruction where it begins; where a coroutine goes on, it is a later one."""


def _start(code: CodeType) -> int:
    return next((each.offset for each in dis.get_instructions(code) if each.opname == "RESUME"), 0)


def _is_by_chance(frame: FrameType) -> bool:
    """Whether a crossing depends on how fast the machine is."""
    caller = frame.f_back
    return caller is not None and (Path(caller.f_code.co_filename).name, caller.f_code.co_name) in BY_CHANCE
