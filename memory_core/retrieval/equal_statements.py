"""Statements with equal texts: which records can be merged, which of them stays, and what it takes over."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from memory_core.agent_memory import Searching
from memory_core.models import Link, MemoryRecord, Patch, Relation
from memory_core.records.fields import FIELDS
from memory_core.records.kinds import CONVERSATION_TURN, MESSAGE_KIND, STEP, USER_QUERY
from memory_core.records.undone import NOTHING, Undone
from memory_core.retrieval.equal_texts import equal_form
from memory_core.values.limits import MAX_LIMIT, MAX_LINKS, MAX_TAGS
from memory_core.values.query_text import cut_query
from memory_core.values.unset import UNSET
from memory_core.where.where import Where

_APART: Final = tuple(field.name for field in FIELDS if field.tells_apart and field.form != "data")
MAX_LIKE: Final = 20
"""Number of most similar records that a new one is compared with at first."""


def is_turn(record: MemoryRecord) -> bool:
    """True if a record is a turn of a conversation: somebody's message, not something derived from one."""
    is_said = record.kind in {MESSAGE_KIND, USER_QUERY} or bool(record.session and record.role)
    return is_said and not any(link.relation == "derived_from" for link in record.links)


def is_statement(record: MemoryRecord) -> bool:
    """True if a record is a statement: neither a turn of a conversation nor a step nor a summary."""
    documents = is_turn(record) or record.kind in {CONVERSATION_TURN, STEP} or record.tier == "summary"
    return not documents and bool(record.text.strip())


def likeness(record: MemoryRecord) -> Hashable:
    """The values, beside the text, that must be equal in merged records."""
    return *map(partial(getattr, record), _APART), repr(sorted(record.data.items())) if record.data else ""


async def equal_to(handle: Searching, draft: MemoryRecord) -> list[MemoryRecord]:
    """Active records that a draft could be merged with. Records with its text are the best hits of a search for it; of
    those that cannot be merged there may be many, so the search is repeated for more."""
    form, limit = equal_form(draft.text), MAX_LIKE
    query, of_its_kind = cut_query(draft.text), Where(kinds=[draft.kind])
    while True:
        hits = await handle.search(query, limit=limit, mode="lexical", floor=False, where=of_its_kind, apart=True)
        like = [hit.record for hit in hits if _can_merge(hit.record, draft)]
        are_more = len(hits) == limit < MAX_LIMIT and any(equal_form(hit.record.text) == form for hit in hits)
        if like or not are_more:
            return like
        limit = min(10 * limit, MAX_LIMIT)


def kept_and_gone(same: Sequence[MemoryRecord], undone: Undone) -> tuple[MemoryRecord, list[MemoryRecord]]:
    """Of records with equal texts, the one that stays, and those that can be merged with it: not those that were kept
    apart from it, and no more than it has room for links."""
    kept = _best(same)
    others = [record for record in same if record.id != kept.id]
    return kept, linkable(kept, [each for each in others if not undone.has("duplicate", kept.id, each.id)])


def linkable(kept: MemoryRecord, others: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """The records that `kept` already links to, and as many more as it has room for."""
    known = {link.id for link in kept.links}
    linked = [record for record in others if record.id in known]
    return linked + [record for record in others if record.id not in known][: MAX_LINKS - len(known)]


def merged(kept: MemoryRecord, gone: Sequence[MemoryRecord]) -> Patch:
    """The patch by which the record that stays takes over what the others have."""
    same = [kept, *gone]
    start = min(map(start_of, same))
    return Patch(
        tags=tuple(dict.fromkeys(tag for record in same for tag in record.tags))[:MAX_TAGS],
        importance=max(record.importance for record in same),
        confidence=max(record.confidence for record in same),
        valid_from=UNSET if start == start_of(kept) else start,
        links=linked(kept, "confirmed_by", gone),
    )


def linked(record: MemoryRecord, relation: Relation, others: Iterable[MemoryRecord]) -> tuple[Link, ...]:
    """The links of a record, and those to the others."""
    return tuple(dict.fromkeys([*record.links, *(Link(relation, other.id) for other in others)]))[:MAX_LINKS]


def start_of(record: MemoryRecord) -> datetime:
    """The time at which the record began to be true: if that is unknown, when it was said."""
    return record.occurred_at if record.valid_from is None else record.valid_from


def _can_merge(one: MemoryRecord, other: MemoryRecord) -> bool:
    are_alike = is_statement(one) and is_statement(other) and likeness(one) == likeness(other)
    are_equal = are_alike and equal_form(one.text) == equal_form(other.text)
    return are_equal and bool(kept_and_gone([one, other], NOTHING)[1])


def _best(same: Sequence[MemoryRecord]) -> MemoryRecord:
    """The record that stays: one that already replaces another, otherwise the oldest."""
    ids = {record.id for record in same}

    def rank(record: MemoryRecord) -> tuple[bool, datetime, str]:
        has_begun = any(link.relation == "confirmed_by" and link.id in ids for link in record.links)
        return (not has_begun, start_of(record), record.id)

    return min(same, key=rank)
