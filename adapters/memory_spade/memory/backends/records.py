"""Long-term memories as records of the core, and back."""

from __future__ import annotations

from datetime import UTC

from memory_core import Draft, MemoryRecord
from memory_core.adapting import with_context, without_context
from memory_spade.memory.backends.base import MemoryEntry


def draft_of(entry: MemoryEntry, agent_id: str) -> Draft:
    """The record to be stored for an entry of an agent; its context is part of the text, which a search finds it by."""
    return Draft(
        with_context(entry.content, entry.context),
        kind=entry.category,
        data={} if entry.context is None else {"context": entry.context},
        confidence=entry.confidence,
        occurred_at=entry.created_at.astimezone(UTC),
        id=entry.id,
        agent=agent_id,
    )


def entry_of(record: MemoryRecord, agent_id: str) -> MemoryEntry:
    """The entry that a record of an agent was stored for; its times are UTC."""
    context = context_of(record)
    return MemoryEntry(
        id=record.id,
        agent_id=agent_id,
        category=record.kind,
        content=without_context(record.text, context),
        context=context,
        confidence=record.confidence,
        created_at=record.occurred_at,
        last_accessed=record.accessed_at or record.created_at,
        access_count=record.access_count,
    )


def context_of(record: MemoryRecord | Draft) -> str | None:
    """The context that is noted in the data of a record."""
    noted = record.data.get("context")
    return noted if isinstance(noted, str) else None
