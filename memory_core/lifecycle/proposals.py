"""The proposals of reflectors, and the protocol that they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_core.models import MemoryRecord
from memory_core.values.value import Value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Insight(Value):
    """A pattern found in many memories."""

    text: str
    sources: tuple[int, ...]
    """Positions of the memories that show it, among those that were passed, from 0."""
    about: str = ""
    """Identifies the pattern, so that it gets a new text when its numbers change; the text itself, if not given."""


class Reflector(Protocol):
    """Finds patterns in many memories."""

    @property
    def name(self) -> str:
        """Identifies the reflector and its version."""
        ...

    async def reflect(self, records: Sequence[MemoryRecord]) -> Sequence[Insight]:
        """The patterns that the memories of one owner show together, given oldest first.

        Raises:
            UnreadableAnswerError: A model's answer cannot be read; the next run asks again. Any other exception reaches
                the caller of `maintain`; what was derived before is stored.
        """
        ...
