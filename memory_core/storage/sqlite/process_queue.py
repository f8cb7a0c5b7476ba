"""The fair queue of the processes that write to one file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from memory_core.storage.sqlite.file_identity import Identity, insist_on_same_file

if sys.platform != "win32":
    import fcntl

PATIENCE_SECONDS: Final = 5.0
"""The time for which a writer waits for its turn before it continues without one."""
PAUSE_SECONDS: Final = 0.0005
"""The pause between two looks at a lock; a wait in the system would have no end."""

_TURN: Final = 0
_NEXT: Final = 1
"""The byte of the side file that each lock covers."""


class WriterQueue:
    """A process's place in the fair queue of one file's writers. Used by one thread at a time.

    SQLite lets one process write at a time; the others retry after pauses that grow to a tenth of a second. Under load
    the process that has just written retries first, and some wait for seconds. So before a commit a process takes two
    locks on a separate file beside the database: first `NEXT`, then `TURN`, after which it releases `NEXT`. A process
    that wants another commit finds `NEXT` taken by one that waits already, and waits behind it.

    The queue decides the order only; SQLite's own lock keeps writers apart. So it does no harm if the side file cannot
    be created, or if a process is stopped during its turn: after `PATIENCE_SECONDS` a writer continues without a turn.
    The locks are POSIX record locks, which the system drops with the process and a fork does not inherit.

    Args:
        path: The side file; created if missing, readable by its owner only, always empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._is_stuck = False
        """True if the last wait was in vain: until there is a turn again, none is waited for."""

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
        os.close(descriptor)
        if is_last:
            self._path.unlink(missing_ok=True)

    def _take(self) -> bool:
        if sys.platform == "win32":
            return False  # only SQLite's own pauses apply
        until = time.monotonic() + (0 if self._is_stuck else PATIENCE_SECONDS)
        try:
            descriptor = self._opened()
            has_turn = _locked(descriptor, _NEXT, until) and _locked(descriptor, _TURN, until)
            _unlock(descriptor, _NEXT)
        except OSError:  # a read-only folder, or a file system without locks
            return False
        self._is_stuck = not has_turn
        return has_turn

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


def _locked(descriptor: int, byte: int, until: float) -> bool:
    """Take a lock as soon as no other process has it; `False` if that takes longer."""
    while not _is_free(descriptor, byte):
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def _unlock(descriptor: int, byte: int) -> None:
    with suppress(OSError):
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, byte)


def _is_free(descriptor: int, byte: int) -> bool:
    """Take a lock if no process has it."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):  # which of them, depends on the system
        return False
    return True
