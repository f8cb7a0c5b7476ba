"""Conversion of ADK's events to RadBot's memories.

A turn is one record: what the user said and what the agent answered. `MEMORY_TYPES` in its data names everything that
the turn stands for (`user_query`, `conversation_turn`, …), and the record's kind is the most specific of these. So
forgetting a memory forgets the whole message, whichever of its types was found.
"""

from __future__ import annotations

try:
    from google.adk.events.event import Event
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from memory_adk.convert import (
    EVENT_ID,
    INVOCATION_ID,
    description,
    expiry_of_events,
    labels,
    moment,
    role_of,
    said,
)
from memory_core import (
    AnyOf,
    BoundMemory,
    DataCondition,
    Draft,
    FieldCondition,
    MemoryRecord,
    Message,
    Patch,
    TriggerDetector,
    Where,
)
from memory_core.adapting import USER_QUERY, Detection, turn_drafts

MEMORY_TYPES: Final = "memory_types"
"""Data of a turn: an object whose keys are its types."""
_BY_RANK: Final = (USER_QUERY, "conversation_turn", "memories", "important_fact")
"""The types of turns, the most specific last."""
REMEMBERED: Final = "remembered"
"""Data of a turn: the text that the user asked to be remembered."""
ASKED, ANSWERED = "user_message", "agent_response"
"""Data of a turn: its two sides."""

_AT_ONCE: Final = 100
"""Number of stored turns that are read in one call."""
_LOOK_BACK: Final = 5
"""Number of earlier turns of a session that are searched for one with content of its own."""


async def drafts_of(
    handle: BoundMemory,
    events: Mapping[str, Event],
    session: str | None,
    metadata: Mapping[str, object],
    detector: TriggerDetector | None,
) -> list[Draft]:
    """Drafts of the turns, with their types; also of a stored turn that one of them asks to be remembered."""
    expires, shared = expiry_of_events(metadata, handle.memory.clock()), description(metadata)
    session = session if session and session.strip() else None
    drafts: list[Draft] = []
    for turn in _turns(events):
        messages = [_message(event, key) for key, event in turn]
        drafts += turn_drafts(messages, session=session, data=_data(turn[0][1], shared))
    drafts = [replace(_typed(draft), expires_at=expires) for draft in drafts]
    if detector is None:
        return [
            draft for at in range(0, len(drafts), _AT_ONCE) for draft in await _kept(handle, drafts[at : at + _AT_ONCE])
        ]
    return await _detected(handle, drafts, detector)


def keys_of_turns(events: Mapping[str, Event], session: str) -> list[str]:
    """The source keys of the turns of some events, by key."""
    messages = ([_message(event, key) for key, event in turn] for turn in _turns(events))
    drafts = (draft for turn in messages for draft in turn_drafts(turn, session=session))
    return [draft.source_key for draft in drafts if draft.source_key is not None]


async def bring_up_to_date(handle: BoundMemory, records: Iterable[MemoryRecord]) -> None:
    """Give stored turns the kind of their most specific type, which changes when they are answered."""
    for record in records:
        if (kind := _kind(record.data)) not in (None, record.kind):
            await handle.update(record.id, Patch(kind=kind))


def of_type(memory_type: str | None) -> Where:
    """The condition that a memory is of this type; `None` and `"all"` accept every type."""
    if memory_type in (None, "", "all"):
        return Where()
    stands_for = DataCondition((MEMORY_TYPES, memory_type), "exists", value=True)
    return Where(matching=(AnyOf((stands_for, FieldCondition("kind", "eq", memory_type))),))


def text_as(record: MemoryRecord, memory_type: str) -> str:
    """The text of a memory as one of its types; the text of the record if it was corrected since."""
    asked, answered = record.data.get(ASKED), record.data.get(ANSWERED)
    if record.text not in (asked, f"User: {asked}\nAssistant: {answered}"):
        return record.text
    as_type = {USER_QUERY: asked, "conversation_turn": record.text}
    return str(as_type.get(memory_type, record.data.get(REMEMBERED, record.text)))


def _turns(events: Mapping[str, Event]) -> Iterable[list[tuple[str, Event]]]:
    """Group events, by key, by invocation, in order; turns of one session may be interleaved."""
    turns: dict[str, list[tuple[str, Event]]] = {}
    for key, event in events.items():
        turns.setdefault(event.invocation_id, []).append((key, event))
    return turns.values()


def _message(event: Event, key: str) -> Message:
    return Message(
        said(event),
        role=role_of(event) or "assistant",
        author=event.author.strip() or None,
        occurred_at=moment(event.timestamp),
        id=key,
    )


def _data(event: Event, shared: Mapping[str, Any]) -> dict[str, Any]:
    data = {**shared, **labels(event.custom_metadata or {}), EVENT_ID: event.id}
    return data | ({INVOCATION_ID: event.invocation_id} if event.invocation_id else {})


def _kind(data: Mapping[str, Any]) -> str | None:
    """The most specific type of a turn; `None` for other records."""
    return max(_types(data), key=_BY_RANK.index, default=None)


def _types(data: Mapping[str, Any]) -> list[str]:
    return [name for name in _BY_RANK if name in (data.get(MEMORY_TYPES) or ())]


def _typed(draft: Draft) -> Draft:
    if ASKED not in draft.data:
        return draft
    types = dict.fromkeys((USER_QUERY, draft.kind), True)
    return replace(draft, data={**draft.data, MEMORY_TYPES: types})


async def _kept(handle: BoundMemory, drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with what a detector found in them when they were stored before."""
    keys = tuple(draft.source_key for draft in drafts if draft.source_key is not None)
    page = await handle.list(where=Where(source_keys=keys), limit=_AT_ONCE)
    marked = {record.source_key: record for record in page.records if REMEMBERED in record.data}
    done: list[Draft] = []
    for draft in drafts:
        if record := marked.get(draft.source_key):
            types = dict.fromkeys((*_types(draft.data), *_types(record.data)), True)
            data = {**draft.data, MEMORY_TYPES: types, REMEMBERED: record.data[REMEMBERED]}
            draft = replace(draft, kind=_kind(data) or draft.kind, tags=record.tags, data=data)  # noqa: PLW2901
        done.append(draft)
    return done


async def _detected(handle: BoundMemory, drafts: Sequence[Draft], detector: TriggerDetector) -> list[Draft]:
    """The drafts with what users ask to be remembered: their own text, or the turn before it."""
    done: list[Draft] = []
    for draft in drafts:
        found = detector.detect(str(draft.data[ASKED])) if ASKED in draft.data else None
        if found and found.previous:
            await _mark_previous(handle, done, draft, found, detector)
        done.append(_remembering(draft, found, found.text) if found and not found.previous else draft)
    return done


async def _mark_previous(
    handle: BoundMemory, done: list[Draft], draft: Draft, found: Detection, detector: TriggerDetector
) -> None:
    """Mark the last turn with content of its own before a draft, among the drafts before it or in the store."""

    def has_content(earlier: Draft) -> bool:
        asked = earlier.data.get(ASKED)
        return bool(asked) and not ((other := detector.detect(str(asked))) and other.previous)

    place = next((n for n in reversed(range(len(done))) if has_content(done[n])), None)
    if place is not None:
        done[place] = _remembering(done[place], found, str(done[place].data[ASKED]))
    elif draft.session and draft.occurred_at:
        where = replace(of_type(USER_QUERY), session=draft.session, until=draft.occurred_at)
        stored = [_again(record) for record in (await handle.list(where=where, limit=_LOOK_BACK)).records]
        if (last := next(filter(has_content, stored), None)) is not None:
            done.append(_remembering(last, found, str(last.data[ASKED])))


def _remembering(draft: Draft, found: Detection, text: str) -> Draft:
    """The draft of a turn that is also a memory of the detected kind."""
    types = dict.fromkeys((*_types(draft.data), found.kind), True)
    data = {**draft.data, MEMORY_TYPES: types, REMEMBERED: text}
    tags = tuple(dict.fromkeys((*draft.tags, *found.tags)))
    return replace(draft, kind=_kind(data) or draft.kind, tags=tags, data=data)


def _again(record: MemoryRecord) -> Draft:
    """A draft that updates a stored turn."""
    return Draft(
        record.text,
        kind=record.kind,
        agent=record.agent,
        session=record.session,
        tags=record.tags,
        occurred_at=record.occurred_at,
        expires_at=record.expires_at,
        source_key=record.source_key,
        data=record.data,
    )
