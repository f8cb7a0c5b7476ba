"""Blocking calls of an agent's memory, in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memory_core.adapting import call_in_thread
from memory_spade.memory.exceptions import MemoryBackendError

T = TypeVar("T")


async def in_thread(what: str, work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread of its own.

    Raises:
        MemoryBackendError: Too many such calls are waiting, or no thread can be started.
    """
    return await call_in_thread(what, work, refused=MemoryBackendError)
