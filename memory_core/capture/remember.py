"""Remembering a conversation: from the messages an application has to records, each once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from memory_core.capture.messages import MESSAGE_KIND, Message
from memory_core.capture.resending import LOOK_BACK, Said, known_messages, said, source_key, source_key_of_id
from memory_core.models import STATES, Draft, Json, MemoryRecord, Order, Page, Patch
from memory_core.where.value import Where

DEFAULT_SESSION: Final = "conversation"
"""The session of messages that are handed over without one: an application with one endless conversation a user."""

_STEP: Final = timedelta(microseconds=1)
"""Between the times of messages that carry none, so that their order is kept."""
_MOST: Final = 10_000
"""Stored messages that are looked at, however many are handed over."""


class Storing(Protocol):
    """What of a handle remembering needs."""

    async def add_many(
        self, entries: Iterable[str | Draft], *, embed: Literal["now", "later"] = "now"
    ) -> list[MemoryRecord | None]: ...

    async def list(self, *, where: Where, order: Order = "newest", limit: int = 50) -> Page: ...

    async def update(self, id: str, patch: Patch) -> MemoryRecord: ...  # noqa: A002  (the record's own word)


async def remember_messages(
    handle: Storing,
    messages: Sequence[Message],
    *,
    session: str,
    now: datetime,
    data: Mapping[str, Json],
    embed: Literal["now", "later"],
) -> list[MemoryRecord]:
    """Store what is new of a conversation and return the record of every message, in order; see `BoundMemory.remember`.

    Args:
        messages: From `read_messages`.
        now: The moment at which messages without a time were said.
        data: Put into every record.
    """
    if not messages:
        return []
    by_place = any(message.id is None for message in messages)
    last = await _last_messages(handle, session, len(messages)) if by_place else ()
    keys, known = _keys(messages, last, session)
    fresh = [place for place in range(len(messages)) if place not in known]
    times = _times(messages, known, now, last)
    drafts = [_draft(messages[place], keys[place], times[place], session, data) for place in fresh]
    written = await handle.add_many(drafts, embed=embed) if drafts else []
    stored = known | {place: record for place, record in zip(fresh, written, strict=True) if record is not None}
    return await _in_order(handle, stored, [place for place in fresh if messages[place].occurred_at is None])


async def _last_messages(handle: Storing, session: str, given: int) -> Sequence[MemoryRecord]:
    """The last messages of a conversation, in order; deleted ones are not among them."""
    limit = min(max(LOOK_BACK, 2 * given), _MOST)
    where = Where(session=session, kinds=(MESSAGE_KIND,), states=STATES)
    page = await handle.list(where=where, order="newest", limit=limit)
    return page.records[::-1]


def _keys(
    messages: Sequence[Message], last: Sequence[MemoryRecord], session: str
) -> tuple[list[str], dict[int, MemoryRecord]]:
    """The source key of each message, and by its place the record of each one without an id that is stored already."""
    without_ids = [place for place, message in enumerate(messages) if message.id is None]
    timed = all(messages[place].occurred_at is not None for place in without_ids)
    given = [_said(messages[place], timed=timed) for place in without_ids]
    stored = [said(r.role, r.text, r.occurred_at if timed else None) for r in last]
    complete = len(last) < max(LOOK_BACK, 2 * len(messages))
    found = known_messages(given, stored, is_complete=complete)
    known = {without_ids[at]: last[place] for at, place in found.items()}
    keys: list[str] = []
    before = min(found.values(), default=len(last)) - 1
    previous = _key_of(last[before]) if before >= 0 else ""
    for place, message in enumerate(messages):
        if place in known:
            key = _key_of(known[place])
        elif message.id is not None:
            key = source_key_of_id(session, message.id)
        else:
            key = source_key(session, previous, _said(message, timed=timed))
        keys.append(key)
        previous = key
    return keys, known


def _said(message: Message, *, timed: bool) -> Said:
    return said(message.role, message.text, message.occurred_at if timed else None)


def _key_of(record: MemoryRecord) -> str:
    return record.source_key or record.id


def _times(
    messages: Sequence[Message], known: Mapping[int, MemoryRecord], now: datetime, last: Sequence[MemoryRecord]
) -> list[datetime]:
    """When each message was said: what it says itself; else now, or next to the known messages that it stands among."""
    times: list[datetime] = []
    last_known = max(known, default=-1)
    latest = max([now, *(record.occurred_at + _STEP for record in last[-1:])])
    first = min((record.occurred_at - place * _STEP for place, record in known.items()), default=latest)
    for place, message in enumerate(messages):
        given = known[place].occurred_at if place in known else message.occurred_at
        if given is None:
            after = times[-1] + _STEP if times else first
            given = after if place < last_known else max(after, latest)
        times.append(given)
    return times


async def _in_order(
    handle: Storing, stored: Mapping[int, MemoryRecord], movable: Collection[int]
) -> list[MemoryRecord]:
    """The records in the order of their messages, the movable ones with a later time than those before them.

    Another process that handed over the same conversation at the same moment may have given some of them its own time.
    """
    records: list[MemoryRecord] = []
    for place in sorted(stored):
        record, before = stored[place], records[-1].occurred_at if records else None
        if place in movable and before is not None and record.occurred_at <= before:
            record = await handle.update(record.id, Patch(occurred_at=before + _STEP))
        records.append(record)
    return records


def _draft(message: Message, key: str, occurred_at: datetime, session: str, data: Mapping[str, Json]) -> Draft:
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return Draft(
        message.text,
        role=message.role,
        kind=MESSAGE_KIND,
        author=message.author,
        session=session,
        occurred_at=occurred_at,
        source_key=key,
        data={**data, "tool_calls": calls} if calls else data,
    )
