"""Errors of the documented memories. `MemoryBackendError` is the base class."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from memory_core import MemoryCoreError

__all__ = [
    "MemoryBackendError",
    "MemoryInitializationError",
    "MemorySearchError",
    "MemoryStorageError",
]


class MemoryBackendError(MemoryCoreError):
    """An operation of the memory failed."""


class MemoryInitializationError(MemoryBackendError):
    """The memory cannot be opened; nothing was changed."""


class MemoryStorageError(MemoryBackendError):
    """A memory could not be stored, changed or deleted; the message names the value."""


class MemorySearchError(MemoryBackendError):
    """Memories could not be searched or read."""


@contextmanager
def reported_as(kind: type[MemoryBackendError]) -> Generator[None]:
    """Convert errors of the core to the documented ones."""
    try:
        yield
    except MemoryBackendError:
        raise
    except MemoryCoreError as error:
        raise kind(str(error)) from error


@contextmanager
def foreign(kind: type[MemoryBackendError], name: str) -> Generator[None]:
    """Convert whatever the code of an application raises to a documented error, so that it never ends a behaviour."""
    try:
        yield
    except MemoryBackendError:
        raise
    except Exception as error:  # the code of an application may raise anything
        raise kind(f"{name} raised {type(error).__name__}: {error}") from error
