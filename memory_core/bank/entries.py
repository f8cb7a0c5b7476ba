"""The values of a memory bank, and their conversion to records and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from memory_core.models import Draft, MemoryRecord
from memory_core.records.kinds import STEP
from memory_core.values.checks import check_count, check_unit
from memory_core.values.ids import new_id
from memory_core.values.times import utc_now
from memory_core.values.value import Value
from memory_core.values.zones import zoned

SUMMARY: Final = "summary"
_BEGINNING_CHARS: Final = 100
"""Characters of each part of a step that its summary quotes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryEntry(Value):
    """One step of a task: what a skill thought, did and found."""

    id: str = field(default_factory=new_id)
    timestamp: datetime = field(default_factory=utc_now)
    """The time at which it was made; a time without a zone is one of this machine's zone."""
    skill_name: str = ""
    thinking: str = ""
    command: str = ""
    result: str = ""
    summary: str = ""
    """If not given, made of the beginnings of `thinking`, `command` and `result`."""
    importance: float = 0.5
    """From 0 to 1: less important entries are compressed before more important ones."""
    tags: list[str] = field(default_factory=list[str])
    step_number: int = 0

    def __post_init__(self) -> None:
        check_unit("importance", self.importance)
        if not self.summary:
            object.__setattr__(self, "summary", _beginnings(self.thinking, self.command, self.result))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemorySummary(Value):
    """A summary of several entries. The entries are still stored: `MemoryBank.get_all_memories`."""

    id: str
    timestamp: datetime
    title: str
    content: str
    source_entries: list[str]
    """Ids of the entries, in the order in which they were added."""
    tags: list[str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryQuery(Value):
    """Conditions for entries of a bank, all of which must be true. An empty list is no condition: the system that this
    class comes from has no other way to say that."""

    keywords: Sequence[str] = ()
    """The entry contains one of them, also as a part of a word, ignoring case."""
    min_importance: float = 0.0
    max_results: int = 10
    tags: Sequence[str] = ()
    """The entry has one of them."""
    date_from: datetime | None = None
    date_to: datetime | None = None
    """Both inclusive; times without a zone are of this machine's zone."""

    def __post_init__(self) -> None:
        check_count("max_results", self.max_results, 0)


def draft_of(entry: MemoryEntry, place: int) -> Draft:
    """The draft of the record for an entry at a position of its bank."""
    parts = (entry.skill_name, entry.thinking, entry.command, entry.result)
    own = "" if entry.summary == _beginnings(*parts[1:]) else entry.summary
    return Draft(
        "\n".join(filter(None, (*parts, own))),
        id=entry.id,
        kind=STEP,
        tags=entry.tags,
        importance=entry.importance,
        occurred_at=zoned(entry.timestamp),
        data={
            "place": place,
            "skill_name": entry.skill_name,
            "thinking": entry.thinking,
            "command": entry.command,
            "result": entry.result,
            "summary": entry.summary,
            "step_number": entry.step_number,
        },
    )


def entry_of(record: MemoryRecord) -> MemoryEntry:
    """The entry stored in a record."""
    data: Any = record.data  # as `draft_of` wrote it
    return MemoryEntry(
        id=record.id,
        timestamp=record.occurred_at,
        skill_name=data["skill_name"],
        thinking=data["thinking"],
        command=data["command"],
        result=data["result"],
        summary=data["summary"],
        importance=record.importance,
        tags=list(record.tags),
        step_number=data["step_number"],
    )


def summary_of(record: MemoryRecord) -> MemorySummary:
    """The summary stored in a record."""
    data: Any = record.data  # as the bank wrote it
    return MemorySummary(
        id=record.id,
        timestamp=record.occurred_at,
        title=data["title"],
        content=record.text,
        source_entries=list(data["source_entries"]),
        tags=list(record.tags),
    )


def place_of(record: MemoryRecord) -> int:
    """The position of an entry in its bank; summaries have none and are ordered by time."""
    place = record.data.get("place")
    return place if isinstance(place, int) else 0


def title_of(entries: Sequence[MemoryEntry]) -> str:
    """The title of a summary of these entries."""
    return f"Summary of {len(entries)} steps ({entries[0].step_number}-{entries[-1].step_number})"


def line_of(entry: MemoryEntry) -> str:
    """An entry in one line."""
    return f"Step {entry.step_number} - {entry.skill_name}: {entry.summary}"


def _beginnings(thinking: str, command: str, result: str) -> str:
    """A summary of a step: the beginnings of its parts."""
    parts = {"Thinking": thinking, "Command": command, "Result": result}
    return "; ".join(f"{name}: {_cut(text)}" for name, text in parts.items() if text) or "No information"


def _cut(text: str) -> str:
    return text if len(text) <= _BEGINNING_CHARS else text[:_BEGINNING_CHARS] + "..."
