"""Conversion of ADK's events to RadBot's memories."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from memory_adk.convert import EVENT_ID, INVOCATION_ID, description, event_key, expiry, labels, moment, role_of, said
from memory_core import BoundMemory, Draft, Message, TriggerDetector, Where
from memory_core.adapting import Detection, turn_drafts

_LOOK_BACK: Final = 5
"""Number of earlier questions of a session that are searched for one with content of its own."""


async def drafts_of(
    handle: BoundMemory,
    events: Sequence[Event],
    session: str | None,
    metadata: Mapping[str, object],
    detector: TriggerDetector | None,
) -> list[Draft]:
    """Drafts for questions and exchanges, turn by turn, and for what users ask to be remembered."""
    expires, shared = expiry(metadata, handle.memory.clock()), description(metadata)
    session = session if session and session.strip() else None
    spoken = [event for event in events if said(event)]
    drafts: list[Draft] = []
    for turn in _turns(spoken):
        drafts += turn_drafts(
            [_message(event, session) for event in turn], session=session, data=_data(turn[0], shared)
        )
    for at, event in enumerate(spoken):
        if detector and event.author == "user" and (found := detector.detect(said(event))):
            text = found.text or await _before(handle, spoken[:at], event, session, detector)
            if text:
                drafts.append(_asked_for(event, found, text, session, _data(event, shared)))
    return [replace(draft, expires_at=expires) for draft in drafts]


def _turns(events: Iterable[Event]) -> Iterable[list[Event]]:
    """Group events by invocation, in order; turns of one session may be interleaved."""
    turns: dict[str, list[Event]] = {}
    for event in events:
        turns.setdefault(event.invocation_id, []).append(event)
    return turns.values()


def _message(event: Event, session: str | None) -> Message:
    return Message(
        said(event),
        role=role_of(event) or "assistant",
        author=event.author.strip() or None,
        occurred_at=moment(event.timestamp),
        id=event_key(event, session, said(event)),
    )


def _data(event: Event, shared: Mapping[str, Any]) -> dict[str, Any]:
    data = {**shared, **labels(event.custom_metadata or {}), EVENT_ID: event.id}
    return data | ({INVOCATION_ID: event.invocation_id} if event.invocation_id else {})


def _asked_for(event: Event, found: Detection, text: str, session: str | None, data: Mapping[str, Any]) -> Draft:
    return Draft(
        text,
        kind=found.kind,
        tags=found.tags,
        author="user",
        session=session,
        occurred_at=moment(event.timestamp),
        source_key=f"{found.kind}:{event_key(event, session, said(event))}",
        data=data,
    )


async def _before(
    handle: BoundMemory, earlier: Sequence[Event], event: Event, session: str | None, detector: TriggerDetector
) -> str | None:
    """The last user message before an event that only refers to it, from these events or from the store."""
    texts = [said(other) for other in reversed(earlier) if other.author == "user"]
    if session and (at := moment(event.timestamp)):
        where = Where(session=session, kinds=("user_query",), until=at)
        texts += [record.text for record in (await handle.list(where=where, limit=_LOOK_BACK)).records]
    return next((text for text in texts if not ((found := detector.detect(text)) and found.previous)), None)
