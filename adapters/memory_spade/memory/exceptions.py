"""What can go wrong in the documented memories. `MemoryBackendError` is the base: catch it last, or alone."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from memory_core import MemoryCoreError

__all__ = ["MemoryBackendError", "MemoryInitializationError", "MemorySearchError", "MemoryStorageError"]


class MemoryBackendError(MemoryCoreError):
    """The memory could not do what it was asked to."""


class MemoryInitializationError(MemoryBackendError):
    """The memory cannot be opened; nothing was touched."""


class MemoryStorageError(MemoryBackendError):
    """Something could not be stored, changed or deleted; the message names the value."""


class MemorySearchError(MemoryBackendError):
    """Something could not be searched for or read."""


@contextmanager
def reported_as(kind: type[MemoryBackendError]) -> Generator[None]:
    """Let errors of the core leave as the documented ones."""
    try:
        yield
    except MemoryBackendError:
        raise
    except MemoryCoreError as error:
        raise kind(str(error)) from error
