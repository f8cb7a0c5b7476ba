"""Everything that the page shows of one memory: its conversation, its history and what it is linked with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_core.app.serve.shapes import Chip, Line, conditions_of, line_of
from memory_core.app.showing import first_lines, set_fields, with_derived
from memory_core.handle import BoundMemory, whole_owner
from memory_core.made_of import made_of, sources_of
from memory_core.models import RELATIONS, Link, MemoryRecord, Relation, Version
from memory_core.profile import PINNED
from memory_core.short_page import each_record
from memory_core.where.where import ANY_STATE, Where

_BEFORE, _AFTER = 4, 4
"""Turns of the conversation that are shown around a memory."""
_MOST_LINKED: Final = 20
OUTWARD: Final[dict[Relation, str]] = {
    "supersedes": "replaces",
    "summarizes": "summarises",
    "derived_from": "comes from",
    "confirmed_by": "is also said by",
    "read": "has read",
    "made": "has made",
    "follows": "follows",
}
INWARD: Final[dict[Relation, str]] = {
    "supersedes": "replaced by",
    "summarizes": "summarised in",
    "derived_from": "source of",
    "confirmed_by": "says the same as",
    "read": "was read by",
    "made": "was made by",
    "follows": "followed by",
}


@dataclass(frozen=True, slots=True)
class Linked:
    """A memory and its relation to the one that is shown, in words."""

    relation: str
    line: Line


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory with what belongs to it."""

    record: MemoryRecord
    before: Sequence[Line]
    after: Sequence[Line]
    history: Sequence[Version]
    linked: Sequence[Linked]
    conditions: Sequence[Chip]
    is_pinned: bool
    derived: int
    """The number of records that were made of its words, and go with it."""
    sources: Sequence[Line]
    """The records of which it was made."""

    @property
    def supersedes(self) -> bool:
        """True if it replaced another memory, which can be undone."""
        return any(link.relation == "supersedes" for link in self.record.links)

    @property
    def fields(self) -> Sequence[tuple[str, str | float]]:
        """The names and values of all fields that are set."""
        return set_fields(self.record)

    @property
    def going(self) -> Sequence[str]:
        """The lines that a person is shown who is asked whether to forget it."""
        return first_lines([self.record])

    @property
    def counted(self) -> str:
        """The number of memories that go if it is forgotten, in words."""
        return with_derived(1, self.derived)


async def shown(owner: BoundMemory, record: MemoryRecord) -> Shown:
    """A memory with what belongs to it."""
    return Shown(
        record,
        await _turns(owner, record, before=True),
        await _turns(owner, record, before=False),
        await owner.history(record.id),
        [*await _linked_from(owner, record), *await _linked_to(owner, record)],
        conditions_of(record),
        PINNED in record.tags,
        len(await made_of(whole_owner(owner), {record.id})),
        [line_of(source) async for source in sources_of(whole_owner(owner), record)],
    )


async def _turns(owner: BoundMemory, record: MemoryRecord, *, before: bool) -> list[Line]:
    """The turns of its session just before or after it, in order."""
    if record.session is None:
        return []
    moment = record.occurred_at
    where = Where(session=record.session, states=("active", "compacted"))
    where = replace(where, until=moment) if before else replace(where, since=moment)
    page = await owner.list(
        where=where, order="newest" if before else "oldest", limit=_BEFORE if before else _AFTER + 1
    )
    lines = [line_of(each) for each in page.records if each.id != record.id]
    return lines[::-1] if before else lines[:_AFTER]


async def _linked_from(owner: BoundMemory, record: MemoryRecord) -> list[Linked]:
    links = record.links[:_MOST_LINKED]
    there = each_record(owner, replace(ANY_STATE, ids=[link.id for link in links]), limit=_MOST_LINKED)
    known = {each.id: line_of(each) async for each in there}
    return [Linked(OUTWARD[link.relation], known[link.id]) for link in links if link.id in known]


async def _linked_to(owner: BoundMemory, record: MemoryRecord) -> list[Linked]:
    found: list[Linked] = []
    for relation in RELATIONS:
        where = replace(ANY_STATE, links=[Link(relation, record.id)])
        linking = each_record(owner, where, order="newest", limit=_MOST_LINKED)
        found += [Linked(INWARD[relation], line_of(each)) async for each in linking]
    return found
