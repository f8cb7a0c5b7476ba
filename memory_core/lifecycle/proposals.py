"""What extractors and reflectors propose, and the protocols they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_core.json_values import Value
from memory_core.models import MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Extracted(Value):
    """A statement found in a turn of a conversation."""

    text: str
    turn: int
    """Position of the turn it was said in, among the turns that were passed, from 0."""
    kind: str = "fact"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Insight(Value):
    """A pattern found in many memories."""

    text: str
    sources: tuple[int, ...]
    """Positions of the memories that show it, among those that were passed, from 0."""
    about: str = ""
    """Identifies the pattern, so that it gets a new text when its numbers change; the text itself, if not given."""


class Extractor(Protocol):
    """Finds facts in turns of a conversation."""

    @property
    def name(self) -> str:
        """Identifies the extractor and its version; turns are read once for each name."""
        ...

    async def extract(self, turns: Sequence[MemoryRecord]) -> Sequence[Extracted]:
        """What turns of one session say, given in order; an exception reaches the caller of `maintain`."""
        ...


class Reflector(Protocol):
    """Finds patterns in many memories."""

    @property
    def name(self) -> str:
        """Identifies the reflector and its version."""
        ...

    async def reflect(self, records: Sequence[MemoryRecord]) -> Sequence[Insight]:
        """What the memories of one owner show together, given oldest first; an exception reaches the caller."""
        ...
