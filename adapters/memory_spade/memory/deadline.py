"""A deadline for the calls of an agent's memory: one that hangs costs a call its memory, and never the agent."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import ClassVar, Final, TypeVar

from memory_core import MemoryCoreError, adapting
from memory_core.adapting import call_in_thread, limits
from memory_spade.memory.exceptions import MemoryBackendError, MemoryTimeoutError

T = TypeVar("T")

DEFAULT_SECONDS: Final = limits.CALL_SECONDS
"""How long an agent waits for a call of its memory by default."""


def checked_seconds(name: str, value: object) -> float:
    """Return a number of seconds above 0.

    Raises:
        TypeError: It is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TypeError(f"{name} must be a number of seconds above 0, such as {DEFAULT_SECONDS:g}, not {value!r}")
    return float(value)


class Deadline(adapting.Deadline):
    """The core's deadline with the documented errors."""

    late_error: ClassVar[type[MemoryCoreError]] = MemoryTimeoutError
    cancelled_error: ClassVar[type[MemoryCoreError]] = MemoryBackendError

    is_over = False
    """Whether the agent was stopped. SPADE lets its behaviours end their last run after that, without a memory."""

    @property
    def level(self) -> int:
        """The level at which a failed call is logged."""
        return logging.WARNING if self.is_over else logging.ERROR


async def in_thread(what: str, work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread of its own.

    Raises:
        MemoryBackendError: Too many such calls are waiting, or no thread can be started.
    """
    return await call_in_thread(what, work, refused=MemoryBackendError)
