"""The fair queue of the processes that write to one file."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from memory_core.storage.sqlite.file_identity import Identity, insist_on_same_file

if sys.platform != "win32":
    import fcntl

PATIENCE_SECONDS: Final = 5.0
"""The time for which a writer waits for its turn before it continues without one."""

_TURN: Final = 0
_NEXT: Final = 1
"""The byte of the side file that each lock covers."""


class WriterQueue:
    """A process's place in the fair queue of one file's writers. Used by one thread at a time.

    SQLite lets one process write at a time; the others retry after pauses that grow to a tenth of a second. Under load
    the process that has just written retries first, and some wait for seconds. So before a commit a process takes two
    locks on a separate file beside the database: first `NEXT`, then `TURN`, after which it releases `NEXT`. A process
    that wants another commit finds `NEXT` taken by the process that has waited longest, and waits behind it.

    The queue decides the order only; SQLite's own lock keeps writers apart. So it does no harm if the side file cannot
    be created, or if a process is stopped during its turn: after `PATIENCE_SECONDS` a writer continues without a turn.
    The locks are POSIX record locks, which the system drops with the process and a fork does not inherit.

    Args:
        path: The side file; created if missing, readable by its owner only, always empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._wait: _Wait | None = None

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait for the turn of this process, and pass it on at the end."""
        has_turn = self._take()
        try:
            yield
        finally:
            if has_turn:
                self._pass_on()

    def close(self, *, is_last: bool) -> None:
        """Leave the queue; the last process deletes the side file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if self._wait is None or not self._wait.close_later():
            os.close(descriptor)
        if is_last:
            self._path.unlink(missing_ok=True)

    def _take(self) -> bool:
        if sys.platform == "win32" or (self._wait is not None and not self._wait.is_over):
            return False  # on Windows only SQLite's own pauses apply
        self._wait = None
        try:
            descriptor = self._opened()
            if _is_free(descriptor, _NEXT) and _is_free(descriptor, _TURN):
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, _NEXT)
                return True
            self._wait = _Wait(descriptor)
            return self._wait.for_turn()
        except OSError:  # a read-only folder, or a file system without locks
            return False

    def _opened(self) -> int:
        """The descriptor of the side file as it is now: another process may have removed it as the last one."""
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            os.close(self._descriptor)
            self._descriptor = None
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        return self._descriptor

    def _pass_on(self) -> None:
        if self._descriptor is not None:
            _unlock(self._descriptor, _TURN)


@contextmanager
def turn_in_place(queue: WriterQueue, path: str, which: Identity) -> Generator[None]:
    """A turn in which the file at `path` is the one that was opened, before the commit and after it.

    Raises:
        StoreUnavailableError: It was deleted or replaced.
    """
    with queue.turn():
        insist_on_same_file(path, which)
        yield
        insist_on_same_file(path, which)


class _Wait:
    """A wait for the turn with a timeout. The system call has none, so it runs in its own thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._has_turn = False
        self._is_given_up = False
        self._closes = False
        self.is_over = False

    def for_turn(self) -> bool:
        """Wait for the turn; returns whether this process has it, `False` after `PATIENCE_SECONDS`."""
        try:
            threading.Thread(target=self._stand_in_line, name="memory-core turn", daemon=True).start()
        except RuntimeError:  # no further thread can be started
            self.is_over = True
            _unlock(self._descriptor, _NEXT)
            return False
        self._ended.wait(PATIENCE_SECONDS)
        with self._lock:
            self._is_given_up = not self._has_turn
            return self._has_turn

    def close_later(self) -> bool:
        """Leave the descriptor to the thread if that is still waiting, so that its number is not reused before."""
        with self._lock:
            self._closes = not self.is_over
            return self._closes

    def _stand_in_line(self) -> None:
        has_turn = _wait_for(self._descriptor, _NEXT) and _wait_for(self._descriptor, _TURN)
        _unlock(self._descriptor, _NEXT)
        with self._lock:
            self._has_turn = has_turn and not self._is_given_up
            if has_turn and self._is_given_up:
                _unlock(self._descriptor, _TURN)
            self.is_over = True
            if self._closes:
                os.close(self._descriptor)
        self._ended.set()


def _wait_for(descriptor: int, byte: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, byte)
    except OSError:  # the system assumes a deadlock: continue without a turn
        return False
    return True


def _unlock(descriptor: int, byte: int) -> None:
    with suppress(OSError):
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, byte)


def _is_free(descriptor: int, byte: int) -> bool:
    """Take a lock if no process has it."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except OSError:
        return False
    return True
