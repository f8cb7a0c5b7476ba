"""The verbs that tests need of each framework: a person says something, a model reads a prompt and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from memory_core import BoundMemory
from memory_spade.testing.xmpp import XmppServer

PATIENT: Final = 60.0
"""The deadline of those who are not to notice that a machine is busy, in seconds."""


@dataclass(frozen=True)
class Setting:
    """The memory that a framework gets, and the model."""

    memory: BoundMemory
    answer: Callable[[str], str]
    """The answer of the model to what is said."""
    seconds: float = PATIENT
    """The deadline of a call of the memory."""
    server: XmppServer | None = None
    """The server of the agents that need one."""


class Driver(Protocol):
    """A model with a memory, put together as one framework does it."""

    async def say(self, text: str, conversation: str = "monday") -> str:
        """Say something in a conversation; returns the answer."""
        ...

    def prompt(self) -> str:
        """All that the model has read for the last answer."""
        ...

    async def settled(self) -> None:
        """Return once all that was said is stored, and is found by its meaning."""
        ...

    @property
    def person(self) -> str | None:
        """The author of what the person says, in records of this framework."""
        ...


async def embedded(memory: BoundMemory) -> None:
    """Return once all is found by its meaning; between the turns of people there is time for that."""
    while (await memory.stats()).vectors_pending:  # noqa: ASYNC110  (vectors have no event)
        await asyncio.sleep(0.01)
