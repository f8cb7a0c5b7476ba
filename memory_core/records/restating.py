"""The effect of adding a source key again."""

from __future__ import annotations

from collections.abc import Iterable

from memory_core.models import DERIVING, Draft, Link, MemoryRecord
from memory_core.values.json_text import is_same_json


def is_same(record: MemoryRecord, later: Draft | MemoryRecord) -> bool:
    """True if a later version under the same source key leaves the record as it is; without a role, the role stays."""
    said = (later.text, later.role or record.role, later.author, tuple(later.tags))
    return said == (record.text, record.role, record.author, record.tags) and is_same_json(later.data, record.data)


def restated_links(record: MemoryRecord, later: MemoryRecord) -> tuple[Link, ...]:
    """The links of a record that is added again: who gives other words, or names sources, gives all of its sources.
    Its other links stay."""
    sources = [link for link in later.links if link.relation in DERIVING]
    if record.text == later.text and not sources:
        return record.links
    return (*sources, *(link for link in record.links if link.relation not in DERIVING))


def are_same_links(links: Iterable[Link], others: Iterable[Link]) -> bool:
    """True if links are equal, and of the same readings."""
    return [reading_of(link) for link in links] == [reading_of(link) for link in others]


def reading_of(link: Link) -> tuple[object, ...]:
    """Equal for equal links of the same reading; equal links may name different ones."""
    return (link.relation, link.id, link.rev, link.session, link.collection, link.agent)
