"""Entries, changes and filters of clients as the drafts, patches and conditions of the operations behind the tools."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from memory_core import (
    BoundMemory,
    Draft,
    DuplicateIdError,
    InvalidInputError,
    Json,
    MemoryRecord,
    Patch,
    RecordNotFoundError,
    ScopeError,
    Where,
)
from memory_core.adapting import PINNED, PINNED_BY_MODEL, correcting, operations
from memory_mcp.showing import milliseconds
from memory_mcp.values import EVERY_COLLECTION, Changes, Entry, Filter

_KEY: Final = "memory_store:"
"""Prefix of a stored memory's source key. Storing under the same id again replaces that memory."""
_USER: Final = "user"
"""Key in a record's data for the user whom the memory is about. The owner comes from the handle."""
_UNCHANGED: Final = object()
"""The user, if a change does not say whom the memory is about."""


def shelf(handle: BoundMemory, collection: str) -> BoundMemory:
    """The handle, narrowed to the collection that a client named.

    Raises:
        ScopeError: The handle is bound to another collection.
    """
    return handle if collection == EVERY_COLLECTION else handle.bind(collection=collection)


def conditions(wanted: Filter | None) -> Where:
    """The conditions of a client's filter."""
    if wanted is None:
        return Where()
    return Where(
        kinds=None if wanted.type is None else (wanted.type,),
        data=None if wanted.user is None else {_USER: wanted.user},
        emotion=wanted.emotion,
        min_importance=wanted.minImportance,
        min_confidence=wanted.minConfidence,
        tags_all=wanted.tags or None,
        since=wanted.since,
        until=wanted.until,
        as_of=wanted.asOf,
    )


async def store(handle: BoundMemory, entry: Entry) -> operations.Stored:
    """Store a memory, unless a memory with an equal text represents it; under a known id it replaces that memory.

    Raises:
        DuplicateIdError: The id belongs to a memory of another collection.
    """
    if entry.id is None:
        return await operations.store(handle, _draft(handle, entry))
    (stored,) = await store_many(handle, [entry])
    return stored


async def store_many(handle: BoundMemory, entries: Sequence[Entry]) -> list[operations.Stored]:
    """Store memories, all or none of them, as `store` does.

    Raises:
        DuplicateIdError: An id belongs to a memory of another collection or of another framework.
    """
    drafts = [_draft(handle, entry) for entry in entries]
    try:
        return await operations.store_many(handle, drafts, replacing={entry.id for entry in entries if entry.id})
    except DuplicateIdError as cause:
        if len(drafts) == 1:
            return [operations.Stored(await _replace(handle, drafts[0]))]
        raise DuplicateIdError(
            f"{cause}; nothing was stored. Change memories of other frameworks with memory_update; name the collection"
        ) from cause


async def store_in(reach: BoundMemory, space: str, collection: str, entry: Entry) -> operations.Stored:
    """Store a memory in a shared space, as `store` does; a memory of that space with the same id is replaced.

    Raises:
        ScopeError: The caller may not write to the space.
        DuplicateIdError: The id belongs to a memory outside the space.
    """
    if not reach.spaces:
        raise ScopeError(f"there is no space {space!r}, because nothing is shared with this caller")
    draft = _draft(reach, entry)
    known = await reach.get(str(draft.id))
    if known is not None and reach.space_of(known) != space:
        raise DuplicateIdError(f"the id {known.id!r} belongs to a memory outside the space {space!r}; use another id")
    if known is not None:
        return operations.Stored(await _replace(reach, draft))
    named = None if collection == EVERY_COLLECTION else collection
    return await operations.store(reach, replace(draft, collection=named), space=space)


async def change(handle: BoundMemory, memory_id: str, content: str | None, changes: Changes | None) -> MemoryRecord:
    """Change the given fields of a memory.

    Raises:
        InvalidInputError: No field is given, or one is given and cleared.
        RecordNotFoundError: There is no such memory.
    """
    given = _given(changes)
    if content is not None:
        given["text"] = content
    if not given:
        raise InvalidInputError("nothing to change: give 'content', 'metadata', or both")
    about = given.pop(_USER, _UNCHANGED)

    def patched(old: MemoryRecord | None) -> Patch:
        if old is None or about is _UNCHANGED:
            return Patch(**given)
        return Patch(**given, data=_about(old.data, about))

    return await operations.change(handle, memory_id, patched)


async def supersede(handle: BoundMemory, memory_id: str, content: str, changes: Changes | None) -> MemoryRecord:
    """Replace a memory that is no longer true with a new one; fields that are not given keep their values.

    Raises:
        RecordNotFoundError: There is no such memory.
        SupersededError: Another memory has already replaced it.
    """
    given = _given(changes)
    old = await _known(handle, memory_id)
    fresh_id = _new_id(handle)
    draft = correcting(handle, old, content)
    data = _about(draft.data, given.pop(_USER, draft.data.get(_USER)))
    named = {"id": fresh_id, "source_key": _KEY + fresh_id, "data": data, **given}
    return await handle.supersede(memory_id, replace(draft, **named))


def _draft(handle: BoundMemory, entry: Entry) -> Draft:
    meta = entry.metadata
    memory_id = entry.id or _new_id(handle)
    return Draft(
        entry.content,
        id=memory_id,
        source_key=_KEY + memory_id,
        kind=meta.type,
        data=_about({}, meta.user),
        tags=_by_model(meta.tags),
        importance=meta.importance,
        confidence=meta.confidence,
        emotion=meta.emotion,
    )


async def _replace(handle: BoundMemory, draft: Draft) -> MemoryRecord:
    """Replace a memory that has the draft's id but was not stored by this server."""
    memory_id = str(draft.id)
    try:
        old = await _known(handle, memory_id)
    except RecordNotFoundError as cause:
        raise DuplicateIdError(
            f"the id {memory_id!r} belongs to a memory of another collection; name that collection, or use another id"
        ) from cause
    names = {item.name for item in fields(Patch)} & {"text", "kind", "tags", "importance", "confidence", "emotion"}
    given: dict[str, Any] = {name: getattr(draft, name) for name in names}
    data = _about(old.data, draft.data.get(_USER))
    return await handle.update(memory_id, Patch(**given, data=data, occurred_at=handle.memory.clock()))


def _given(changes: Changes | None) -> dict[str, Any]:
    """The changes under the field names of drafts and patches, plus `user`; `None` clears a field."""
    if changes is None:
        return {}
    cleared = changes.clear or ()
    given: dict[str, Any] = {name: getattr(changes, name) for name in changes.model_fields_set - {"clear"}}
    for name in cleared:
        if given.get(name) is not None:
            raise InvalidInputError(f"{name!r} is given and in 'clear'; leave out one of them")
    given = {name: value for name, value in given.items() if value is not None} | dict.fromkeys(cleared)
    if "type" in given:
        given["kind"] = given.pop("type")
    if "tags" in given:
        given["tags"] = _by_model(given["tags"])
    return given


def _by_model(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags that a model gives a memory, which it cannot pin as a person can."""
    return tuple(PINNED_BY_MODEL if tag == PINNED else tag for tag in tags)


async def _known(handle: BoundMemory, memory_id: str) -> MemoryRecord:
    record = await handle.get(memory_id)
    if record is None:
        raise RecordNotFoundError(f"there is no memory {memory_id!r}")
    return record


def _about(data: Mapping[str, Json], user: Any) -> dict[str, Json]:
    """`data` with the user whom the memory is about."""
    others = {key: value for key, value in data.items() if key != _USER}
    return others if user is None else {**others, _USER: user}


def _new_id(handle: BoundMemory) -> str:
    """`mem_TIMESTAMP`, as documented, plus a random suffix that distinguishes memories of the same millisecond."""
    return f"mem_{milliseconds(handle.memory.clock())}_{secrets.token_hex(8)}"
