"""A contract that is tested in part."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Sample:
    """A contract that another class keeps entirely: each promise once, with its first parameters."""

    parts: ClassVar[tuple[type, ...]] = ()
    """The parts of the contract; none means all."""

    @classmethod
    def holds(cls, function: Callable[..., object]) -> bool:
        """True if a test belongs to one of the parts."""
        return not cls.parts or any(function in vars(part).values() for part in cls.parts)
