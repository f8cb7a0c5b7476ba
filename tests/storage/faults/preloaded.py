"""The library of `faults.c`: compile it, preload it into a process, and arm it from inside that process."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

_SOURCE: Final = Path(__file__).with_name("faults.c")
_HEAD_BYTES: Final = 32


class Kind(IntEnum):
    """The call that goes wrong."""

    WRITE = 0
    SYNC = 1
    READ = 2
    TRUNCATE = 3


class Manner(IntEnum):
    """The way in which it goes wrong."""

    ERROR = 0
    """The call fails once, with EIO."""
    FULL = 1
    """This call and all later ones of its kind fail, with ENOSPC for writes."""
    SHORT = 2
    """Half of the bytes are read, or written to a disk that is full after them."""
    DROP = 3
    """The call reports success and does nothing."""


class What(IntEnum):
    """The change that reached the files."""

    WROTE = 1
    SYNCED = 2
    CUT = 3
    RENAMED = 4
    UNLINKED = 5
    MARKED = 6


class Event(NamedTuple):
    """One recorded call, or a mark that the test set."""

    what: What
    path: str
    offset: int
    """The place where it wrote, the new size of a file that was cut, or the number of a mark."""
    data: bytes
    """The bytes that it wrote, or the new path of a renamed file."""


def compiler() -> str | None:
    """A C compiler, on a system whose libraries can be preloaded."""
    return shutil.which("cc") if sys.platform == "linux" else None


def compiled(folder: Path) -> Path:
    """Compile the library into a folder."""
    cc, library = compiler(), folder / "faults.so"
    assert cc is not None
    subprocess.run([cc, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl", "-lpthread"], check=True)
    return library


def environment(library: Path) -> dict[str, str]:
    """The environment of a process with the library."""
    return {**os.environ, "LD_PRELOAD": str(library)}


class Faults:
    """The preloaded library of this process.

    Args:
        folder: The calls on files in it are counted; the real path.
    """

    def __init__(self, folder: Path) -> None:
        self._library = ctypes.CDLL(None)
        self._library.fault_watch(str(folder).encode())

    @contextmanager
    def counted(self) -> Generator[dict[Kind, int]]:
        """Count the calls of the block; the result is filled at its end."""
        counts: dict[Kind, int] = {}
        self._library.fault_arm(-1, ctypes.c_long(0), 0)
        yield counts
        self._library.fault_disarm()
        counts.update({kind: self._library.fault_seen(int(kind)) for kind in Kind})

    def arm(self, kind: Kind, number: int, manner: Manner) -> None:
        """Let call `number` from now on, counted from 1, go wrong."""
        self._library.fault_arm(int(kind), ctypes.c_long(number), int(manner))

    def disarm(self) -> int:
        """Let no more calls go wrong; returns how many did."""
        return int(self._library.fault_disarm())

    @contextmanager
    def recorded(self, path: Path) -> Generator[None]:
        """Record everything that reaches the files meanwhile; see `events`."""
        self._library.fault_record(str(path).encode())
        try:
            yield
        finally:
            self._library.fault_record(None)

    def mark(self, number: int) -> None:
        """Put a mark into the record."""
        self._library.fault_mark(ctypes.c_uint64(number))


def events(path: Path) -> Iterator[Event]:
    """The events that were recorded, in order."""
    with path.open("rb") as file:
        while head := file.read(_HEAD_BYTES):
            what, path_length, offset, length = (int.from_bytes(head[n : n + 8], "little") for n in range(0, 32, 8))
            name, has_data = file.read(path_length).decode(), what in (What.WROTE, What.RENAMED)
            yield Event(What(what), name, offset, file.read(length) if has_data else b"")
