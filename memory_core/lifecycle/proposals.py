"""What extractors and reflectors propose, and the protocols they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memory_core.models import MemoryRecord
from memory_core.values.value import Value


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
        """What turns of one session say, given in order.

        Raises:
            UnreadableAnswerError: A model's answer cannot be read: the turns stay unread, and the next run passes them
                again. Any other exception reaches the caller of `maintain`; what was extracted before is stored.
        """
        ...


@runtime_checkable
class AnswerExtractor(Extractor, Protocol):
    """An extractor that is also shown which questions the turns answer, since "the right one" alone says nothing."""

    async def extract_answers(self, turns: Sequence[MemoryRecord], questions: Sequence[str]) -> Sequence[Extracted]:
        """Called instead of `extract`.

        Args:
            turns: As for `extract`.
            questions: For each turn, what was asked right before it by somebody else; empty if nothing was.
        """
        ...


class Reflector(Protocol):
    """Finds patterns in many memories."""

    @property
    def name(self) -> str:
        """Identifies the reflector and its version."""
        ...

    async def reflect(self, records: Sequence[MemoryRecord]) -> Sequence[Insight]:
        """What the memories of one owner show together, given oldest first; exceptions are those of `extract`."""
        ...
