"""Explicit memories: conversion of ADK's memory entries to records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from google.adk.memory.memory_entry import MemoryEntry

from memory_adk.convert import content_text, description, expiry, parse_time
from memory_core import BoundMemory, Draft, InvalidInputError, Patch, Where
from memory_core.adapting import STATES


def entry_draft(entry: MemoryEntry, metadata: Mapping[str, object], now: datetime) -> Draft:
    """Convert an entry to a draft. The entry's own metadata overrides that of the call.

    An explicit memory is a statement and not a turn of a conversation, so it has no role, even if its content has one.

    Raises:
        InvalidInputError: The entry has no text, contains other parts than text, or has invalid metadata.
    """
    merged = {**metadata, **entry.custom_metadata}
    if not isinstance(merged.get("enable_consolidation"), bool | None):
        raise TypeError(f"enable_consolidation must be a bool, not {merged['enable_consolidation']!r:.80}")
    for part in entry.content.parts or []:
        if part.text is None:
            raise InvalidInputError("a memory can contain only text; leave out blobs, files and function parts")
    text = content_text(entry.content)
    if not text:
        raise InvalidInputError("the entry has no text; give it a content with a text part")
    author = (entry.author or "").strip() or None
    return Draft(
        text,
        id=_optional_string("memory_id", merged.get("memory_id")) or entry.id,
        kind=_optional_string("memory_type", merged.get("memory_type")) or "fact",
        tags=tags_of(merged),
        author=author,
        occurred_at=parse_time("timestamp", entry.timestamp) if entry.timestamp else None,
        expires_at=expiry(merged, now),
        data=description(merged),
    )


def checked_entries(memories: object) -> list[MemoryEntry]:
    """Return `memories` as a list, or raise what ADK's services raise for other types."""
    if isinstance(memories, str) or not isinstance(memories, Sequence):
        raise TypeError(f"memories must be a sequence of MemoryEntry, not {memories!r:.80}")
    if not memories:
        raise InvalidInputError("memories is empty; give at least one MemoryEntry")
    for entry in cast("Sequence[object]", memories):
        if not isinstance(entry, MemoryEntry):
            raise TypeError(f"memories must contain MemoryEntry objects, not {entry!r:.80}")
    return list(cast("Sequence[MemoryEntry]", memories))


def _replacement(draft: Draft) -> Patch:
    """The update of a known memory that is added again."""
    patch = Patch(
        text=draft.text,
        role=draft.role,
        kind=draft.kind,
        tags=draft.tags,
        data=draft.data,
        expires_at=draft.expires_at,
    )
    patch = patch if draft.author is None else replace(patch, author=draft.author)
    return patch if draft.occurred_at is None else replace(patch, occurred_at=draft.occurred_at)


async def put(handle: BoundMemory, drafts: Sequence[Draft]) -> None:
    """Add memories; a memory with a known id has its text and metadata replaced."""
    known = await _known_ids(handle, [draft.id for draft in drafts if draft.id])
    await handle.add_many([draft for draft in drafts if draft.id not in known])
    for draft in drafts:
        if draft.id in known:
            await handle.update(draft.id, _replacement(draft))


async def _known_ids(handle: BoundMemory, ids: Sequence[str]) -> frozenset[str]:
    if len(set(ids)) < len(ids):
        raise InvalidInputError(f"memories of one call must have different ids, not {ids!r}")
    if not ids:
        return frozenset()
    page = await handle.list(where=Where(ids=ids, states=STATES, left=None), limit=len(ids))
    return frozenset(record.id for record in page.records)


def _optional_string(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a string, not {value!r}")
    return value or None


def tags_of(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """Return the `tags` and `topics` in some metadata without duplicates."""
    given = [*_strings("tags", metadata.get("tags")), *_strings("topics", metadata.get("topics"))]
    return tuple(dict.fromkeys(given))


def _strings(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(f"{name} must be a list of strings, not {value!r}")
    return [str(item) for item in cast("Sequence[object]", value)]
