"""RadBot's types of memories, as views of the messages that a `MemoryService` stores.

A message is one record. It is a `user_query`, with its answers a `conversation_turn`, and one of the `memories` or an
`important_fact` if the user asked for that. So whatever type a message was found as, deleting it deletes all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from memory_adk.convert import EVENT_ID, INVOCATION_ID, MESSAGE
from memory_core import (
    AllOf,
    AnyOf,
    BoundMemory,
    DataCondition,
    FieldCondition,
    Hit,
    MemoryRecord,
    Patch,
    TriggerDetector,
    Where,
)
from memory_core.adapting import USER_QUERY, operations

CONVERSATION_TURN: Final = "conversation_turn"
IMPORTANT_FACT: Final = "important_fact"
MOST_HITS: Final = 10_000
"""Most hits that one search of the core returns."""
_ASKED, _ANSWERED = "user_message", "agent_response"
"""Metadata of a memory: the two sides of its turn."""
_REMEMBERED: Final = "remembered"
"""Data of a message: the part of it that the user asked to be remembered."""
_LOOK_BACK: Final = 10
"""The number of messages of a user to which "save this" can refer."""

_OF_EVENT: Final = DataCondition((EVENT_ID,), "exists", value=True)

_Turn = tuple[str | None, str]
"""The session and the invocation, or the id of a record without one."""


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory as `search_memories` returns it."""

    id: str
    text: str
    timestamp: datetime
    """Time of the message, with time zone."""
    memory_type: str
    similarity: float | None
    """0 to 1; `None` if no vector was compared."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


def of_type(memory_type: str | None, since: datetime | None) -> Where:
    """The condition that a memory can be shown as this type; `None` and `"all"` accept every type."""
    if memory_type in (None, "", "all"):
        return Where(since=since)
    kind = FieldCondition("kind", "eq", memory_type)
    by_user = AllOf((_OF_EVENT, FieldCondition("role", "eq", "user")))
    shown_as: dict[str | None, AllOf] = {USER_QUERY: by_user, CONVERSATION_TURN: AllOf((_OF_EVENT,))}
    return Where(since=since, matching=(AnyOf((kind, shown_as.get(memory_type, kind))),))


async def search(
    memory: BoundMemory, query: str, limit: int, memory_type: str | None, since: datetime | None
) -> list[FoundMemory]:
    """Find memories of a type, best first; the messages of one turn are one memory, and so are equal statements."""
    most = min(2 * limit, MOST_HITS)  # a question and its answer
    by_itself = partial(memory.search, context=False)
    where = of_type(memory_type, since)
    groups = await operations.search(by_itself, query, limit=most, where=where, apart=_turn_of_message)
    hits = [best for best, *_ in groups]
    turns = await _turns(memory, hits)
    found: dict[_Turn, FoundMemory] = {}
    for hit in hits:
        turn = _turn_of(hit.record)
        shown = _shown(hit, turns.get(turn, [hit.record]), None if memory_type in ("", "all") else memory_type)
        if shown is not None:
            found.setdefault(turn, shown)
    return list(found.values())[:limit]


async def mark(memory: BoundMemory, session: str, triggers: TriggerDetector) -> None:
    """Give the last messages of a session the types and the tags that its user asks for; it can be repeated.

    "Save this" gives them to the last message before it that has content of its own.
    """
    page = await memory.list(where=Where(session=session, roles=("user",)), limit=_LOOK_BACK)
    last: MemoryRecord | None = None
    for said in reversed(page.records):
        found = triggers.detect(said.text)
        if found is None or not found.previous:
            last = said
        if found is not None and last is not None:
            text = last.text if found.previous else found.text
            patch = _marked(last, found.kind, found.tags, text)
            if (patch.kind, patch.tags, patch.data) != (last.kind, last.tags, last.data):
                last = await memory.update(last.id, patch)


def _marked(record: MemoryRecord, kind: str, tags: Sequence[str], text: str) -> Patch:
    """The patch for a message that is to be remembered; what it says itself takes precedence."""
    known = {_ASKED: record.text, _REMEMBERED: text}
    return Patch(
        kind=IMPORTANT_FACT if IMPORTANT_FACT in (record.kind, kind) else kind,
        tags=tuple(dict.fromkeys((*record.tags, *tags))),
        data={**known, **record.data},
    )


async def _turns(memory: BoundMemory, hits: Sequence[Hit]) -> Mapping[_Turn, Sequence[MemoryRecord]]:
    """The messages of the turns in which hits were said, in order."""
    named = {str(hit.record.data[INVOCATION_ID]) for hit in hits if INVOCATION_ID in hit.record.data}
    if not named:
        return {}
    where = Where(matching=(_OF_EVENT, DataCondition((INVOCATION_ID,), "in", sorted(named))))
    page = await memory.list(where=where, order="oldest", limit=MOST_HITS)
    turns: defaultdict[_Turn, list[MemoryRecord]] = defaultdict(list)
    for record in page.records:
        turns[_turn_of(record)].append(record)
    return turns


def _turn_of_message(record: MemoryRecord) -> _Turn | None:
    """The turn of a message, which tells equal messages apart: a question may have been asked twice, and answered
    differently."""
    return _turn_of(record) if EVENT_ID in record.data else None


def _turn_of(record: MemoryRecord) -> _Turn:
    invocation = record.data.get(INVOCATION_ID) if EVENT_ID in record.data else None
    return record.session, str(invocation or record.id)


def _shown(hit: Hit, turn: Sequence[MemoryRecord], memory_type: str | None) -> FoundMemory | None:
    """A hit as a memory of a type; `None` if nobody has answered and it should be a whole turn."""
    record = hit.record
    asked, answered = _said_by("user", turn), _said_by("assistant", turn)
    kind = memory_type or _kind(record, asked, answered)
    text = record.text
    if kind == CONVERSATION_TURN and EVENT_ID in record.data:
        if not (asked and answered):
            return None
        text = f"User: {asked}\nAssistant: {answered}"
    elif kind != USER_QUERY and record.data.get(_ASKED) == record.text:  # it was not corrected
        text = str(record.data[_REMEMBERED])
    both = {_ASKED: asked, _ANSWERED: answered} if EVENT_ID in record.data else {}
    return FoundMemory(
        id=record.id,
        text=text,
        timestamp=record.occurred_at,
        memory_type=kind,
        similarity=hit.similarity,
        metadata={
            **record.data,
            **{name: value for name, value in {**both, "session_id": record.session}.items() if value},
            **({"tags": list(record.tags)} if record.tags else {}),
        },
    )


def _said_by(role: str, turn: Sequence[MemoryRecord]) -> str:
    return "\n".join(record.text for record in turn if record.role == role)


def _kind(record: MemoryRecord, asked: str, answered: str) -> str:
    """The most specific type of a memory."""
    if record.kind != MESSAGE or not asked:
        return record.kind
    return CONVERSATION_TURN if answered else USER_QUERY
