"""The value that a recall selects, orders and formats."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.models import Hit, MemoryRecord


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hit that may get a line in the block."""

    hit: Hit
    text: str
    """The text to show: the best passage, or all of a short text."""
    words: str
    """The text to show in the form that equal texts share."""
    terms: frozenset[str]
    is_request: bool
    """Whether it only asks a question, so that statements come before it."""
    before: MemoryRecord | None = None
    """The question before it, if it is a short reply."""
    after: MemoryRecord | None = None
    """The answer after it, if it is a question."""

    @property
    def record(self) -> MemoryRecord:
        """The record of the hit."""
        return self.hit.record

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """Every record whose text is shown, in order."""
        return tuple(record for record in (self.before, self.record, self.after) if record is not None)
