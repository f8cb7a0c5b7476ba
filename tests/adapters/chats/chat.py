"""The protocol by which the tests use a conversation in any framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memory_core import BoundMemory

DOINGS = ("say", "again", "at_once", "edit", "regenerate", "go_back", "resume", "remove", "interrupt")
"""The events of a conversation: a person says something, a client sends everything again, all processes do so at the
same time, a person edits, asks for another answer, goes back to an earlier point, goes on from a branch that was left,
removes a message, says something to a model that then fails. A framework that does not offer one of them says instead.
"""


class Chat(Protocol):
    """A conversation in one framework, which several processes have part in."""

    def __init__(self, handles: Sequence[BoundMemory]) -> None:
        """`handles` is the memory, as each process has opened it."""
        ...

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        """One of `DOINGS`, of a message chosen by a number, in one process."""
        ...

    async def shown(self) -> list[str]:
        """The texts that the framework shows at the end, once all is stored."""
        ...
