"""The identity of a file: nothing is written to one that was deleted or replaced at its path."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memory_core.errors import StoreUnavailableError


class Identity(NamedTuple):
    """Device and inode: they identify a file whatever its path."""

    device: int
    inode: int


def insist_on_same_file(path: str, wanted: Identity) -> None:
    """Refuse to write to a file that has been deleted or replaced at its path."""
    found = _identity(Path(path))
    if found != wanted:
        raise StoreUnavailableError(
            f"the memory file {path!r} was {'replaced' if found else 'deleted'} while it was open; nothing more is "
            "written: close this memory, and open it again to use what is there now"
        )


def insist_on_opened(path: str, wanted: Identity) -> None:
    """Refuse a connection if another file was put at the path while it was opened."""
    if _identity(Path(path)) != wanted:
        raise StoreUnavailableError(f"the memory file {path!r} was replaced while it was opened; open it again")


def _identity(path: Path) -> Identity | None:
    """The identity of the file that is at the path now, if there is one."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return Identity(found.st_dev, found.st_ino)
