"""Folders in which copies of a file are made before they get their name, and what killed processes left of them.

A process locks the folder of its copy, and the system drops the lock with the process: a folder without a lock was left
by a process that was killed. Not the copy itself is locked, because a descriptor of it would be closed after it has its
name, which would drop the locks of a connection that opened it in between (`files.py`).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

SUFFIX: Final = ".unfinished-copy"


@contextmanager
def unfinished(target: Path) -> Generator[Path]:
    """An empty file in a folder of its own beside the target, readable by its owner only; rename it when complete.

    What is still in the folder at the end is deleted.
    """
    with _new_folder(target) as folder:
        copy = folder / target.name
        copy.touch(0o600)
        yield copy


def abandoned(folder: Path) -> list[Path]:
    """The files that killed processes have left of their copies in a folder."""
    found = sorted(folder.glob(f".*{SUFFIX}"))
    return [left for left in found if _is_free(left)]


def remove_abandoned(folder: Path) -> None:
    """Delete what killed processes have left of their copies in a folder."""
    for left in abandoned(folder):
        with _locked(left) as is_free:
            if is_free:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _new_folder(target: Path) -> Generator[Path]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=SUFFIX, dir=target.parent))
        with _locked(folder):
            if not folder.exists():  # taken for abandoned before it was locked
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def _is_free(folder: Path) -> bool:
    with _locked(folder) as is_free:
        return is_free


@contextmanager
def _locked(folder: Path) -> Generator[bool]:
    """Lock a folder for the block; yields whether no other process has it locked, `False` if that cannot be known."""
    if sys.platform == "win32":
        yield False
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # it is gone, or not a folder
        yield False
        return
    try:
        yield _takes_lock(descriptor)
    finally:
        os.close(descriptor)


def _takes_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or the file system has no locks
        return False
    return True
