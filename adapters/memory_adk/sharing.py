"""The spaces that an application shares with its users: memories of the app, a team or a company beside their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from memory_core import BoundMemory, InvalidInputError, SharedMemory
from memory_core.adapting import Deadline

Spaces = Mapping[str, BoundMemory]
"""Handles by label, as `SharedMemory` takes them."""
NOTHING: Final[Spaces] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is granted. It is looked up at every call, so what is no longer granted is gone at once."""

    spaces: Spaces | Callable[[str, str], Spaces]
    """For everybody, or by app and user."""
    writable: Collection[str]
    """Labels of the spaces that may be written to, where they are granted."""

    def __post_init__(self) -> None:
        if isinstance(self.writable, str):
            raise InvalidInputError(f"writable must be a collection of labels, such as [{self.writable!r}]")

    def check(self, own: BoundMemory) -> None:
        """Raise what is wrong with spaces that are granted to everybody."""
        if not callable(self.spaces) and (self.spaces or self.writable):
            SharedMemory(own, self.spaces, writable=self.writable)

    async def reached(self, own: BoundMemory, deadline: Deadline) -> BoundMemory | SharedMemory:
        """`memory_of` in time and without blocking anybody else, also if a function grants the spaces."""
        if not callable(self.spaces):
            return self.memory_of(own)
        return await deadline.ask("asking what is shared", lambda: self.memory_of(own))

    def memory_of(self, own: BoundMemory) -> BoundMemory | SharedMemory:
        """The memory of a user together with the spaces that are granted now.

        Raises:
            ScopeError: A space is of another `Memory`, or has the owner of another space.
            InvalidInputError: A label is invalid, or there are too many spaces.
        """
        spaces = self.spaces(own.scope.app, own.scope.user or "") if callable(self.spaces) else self.spaces
        if not spaces:
            return own
        return SharedMemory(own, spaces, writable=[label for label in self.writable if label in spaces])
