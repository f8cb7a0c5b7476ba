"""A line of a block: a hit, with the turns beside it that it needs to be understood."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from memory_core.models import Hit, MemoryRecord
from memory_core.recall.keys import Key, key_of
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.equal_texts import equal_form

_SENTENCE: Final = re.compile(r"[^.!?\u2026\n\u3002\uff01\uff1f\u061f]+[.!?\u2026\u3002\uff01\uff1f\u061f]*")


@dataclass(frozen=True, slots=True)
class Line:
    """A hit that may get a line in the block."""

    hit: Hit
    worth: float
    """The value that orders the lines, best first: the score, or less for a copy of the question."""
    text: str
    """The text to show: the best passage, or all of a short text."""
    before: MemoryRecord | None = None
    """The question before it, if it is a short reply."""
    after: MemoryRecord | None = None
    """The answer after it, if it is a question."""
    form: str = field(default="", compare=False)
    """The text to show in the form that equal texts share."""
    record: MemoryRecord = field(init=False, compare=False, repr=False)
    """The record of the hit."""
    key: Key = field(init=False, compare=False, repr=False)
    """The key of its record."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", self.hit.record)
        object.__setattr__(self, "key", key_of(self.hit.record))

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """Every record whose text is shown, in order."""
        return tuple(record for record in (self.before, self.record, self.after) if record is not None)


def line(hit: Hit, wanted: frozenset[str], longest: int) -> Line:
    """A line for a hit.

    Args:
        wanted: The terms of the question, for the choice of the part of a long text.
        longest: Most characters shown of it.
    """
    whole = hit.passage.text if hit.passage else hit.record.text
    text = best_part(whole, wanted, longest)
    return Line(hit, hit.score, text, form=equal_form(text))


def best_part(text: str, wanted: frozenset[str], longest: int) -> str:
    """The part of a text that shares most terms with the query, in whole sentences if they fit; all of a short text.

    Args:
        wanted: The terms of the query.
        longest: Most characters of the part, ellipses included.
    """
    if len(text) <= longest:
        return text
    spans = [found.span() for found in _SENTENCE.finditer(text)] or [(0, len(text))]
    shared = [len(wanted.intersection(analyse(text[start:stop][: 2 * longest]))) for start, stop in spans]
    first = last = shared.index(max(shared))
    while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= longest - 2:
        last += 1
    while first and spans[last][1] - spans[first - 1][0] <= longest - 2:
        first -= 1
    start, stop = spans[first][0], min(spans[last][1], spans[first][0] + longest - 2)
    return f"{'…' if start else ''}{text[start:stop].strip()}{'…' if stop < len(text) else ''}"
