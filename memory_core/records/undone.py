"""Remember which steps were taken back, so that no later run repeats or proposes them.

What remembers it is a note: an archived record of the kind `undone` without a text. So it is in the file, other
processes know it, and copies, exports and other stores have it. It belongs to the owner as a whole, because another
handle may maintain the same records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core.models import Draft, Json, MemoryRecord

UNDONE: Final = "undone"
"""The kind of a note; deleting the notes allows the steps again."""
MAX_NOTED: Final = 1_000
"""Ids after which another note begins, because the size of a record's data is limited."""
_SAME_AS: Final = {"alike": "duplicate", "contradiction": "correction"}
"""Records that were kept apart stay apart, whether their texts look alike or are equal; and they stay beside each
other, no matter who says that one replaces the other."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The steps that were taken back."""

    steps: Mapping[str, Mapping[str, Sequence[frozenset[str]]]]
    """For each reason and record, the records of each step that was about it."""

    def has(self, reason: str, *ids: str) -> bool:
        """True if a step for this reason that was about all of these records was taken back."""
        about_first = self.steps.get(noted_reason(reason), {}).get(ids[0], ())
        return any(group.issuperset(ids) for group in about_first)


NOTHING: Final = Undone({})


def undone_by(notes: Iterable[MemoryRecord]) -> Undone:
    """The statements of the notes among some records."""
    return undone_of(step for note in notes for step in noted(note))


def undone_of(steps: Iterable[Sequence[str]]) -> Undone:
    """The same of some steps, each its reason and the ids of its records."""
    found: dict[str, dict[str, list[frozenset[str]]]] = defaultdict(lambda: defaultdict(list))
    for reason, *ids in steps:
        group = frozenset(ids)
        for each in group:
            found[reason][each].append(group)
    return Undone(found)


def notes_of(steps: Iterable[tuple[str, ...]], known: Iterable[MemoryRecord]) -> list[Draft]:
    """The notes to store for steps that are taken back, without what is noted already.

    Args:
        steps: For each its reason (see `noted_reason`) and the ids of its records.
        known: The notes that are stored.
    """
    before = {tuple(step) for note in known for step in noted(note)}
    drafts: list[Draft] = []
    part: list[Json] = []
    size = 0
    for said in dict.fromkeys(steps):
        if len(said) > 1 and said not in before:
            part.append(list(said))
            size += len(said)
        if size >= MAX_NOTED:
            drafts.append(Draft(kind=UNDONE, data={"steps": part}))
            part, size = [], 0
    return [*drafts, Draft(kind=UNDONE, data={"steps": part})] if part else drafts


def noted_reason(reason: str) -> str:
    """The reason under which a step is noted."""
    return _SAME_AS.get(reason, reason)


def noted(note: MemoryRecord) -> list[list[str]]:
    """The steps of a note, each its reason and the ids of its records; none of another record."""
    steps = note.data.get("steps")
    if note.kind != UNDONE or note.text or not isinstance(steps, list | tuple):  # somebody's own record
        return []
    return [[str(each) for each in step] for step in steps if isinstance(step, list | tuple) and step]
