"""Store the messages of a conversation as records, each once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from memory_core.conversation.messages.alignment import LOOK_BACK
from memory_core.conversation.messages.known_messages import key_in_scope, keys_of, known_records
from memory_core.conversation.messages.own_words import all_in_own_words
from memory_core.models import Draft, MemoryRecord, Order, Page, Patch, Scope
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.records.restating import is_same
from memory_core.values.limits import MAX_LISTED
from memory_core.values.times import shifted
from memory_core.where.where import ANY_STATE, Where

DEFAULT_SESSION: Final = "conversation"
"""The session of messages without one, for applications with a single endless conversation per user."""

STEP: Final = timedelta(microseconds=1)
"""Interval between the times given to messages without a time, which keeps their order."""
_MOST: Final = 10_000
"""Most stored messages that are compared, however many messages are passed."""


class Storing(Protocol):
    """The methods of a handle that this module needs."""

    @property
    def scope(self) -> Scope: ...

    async def add_many(
        self, entries: Iterable[str | Draft], *, embed: Literal["now", "later"] = "now"
    ) -> list[MemoryRecord | None]: ...

    async def list(self, *, where: Where, order: Order = "newest", limit: int = 50) -> Page: ...

    async def update(self, id: str, patch: Patch) -> MemoryRecord: ...  # noqa: A002  (the record's own word)


async def remember_drafts(
    handle: Storing,
    drafts: Sequence[Draft],
    *,
    now: datetime,
    embed: Literal["now", "later"] = "now",
    edits: bool = True,
    ids_may_differ: bool = False,
    context: int = 0,
) -> list[MemoryRecord]:
    """Store the new messages of a conversation; returns the record of every message in order, without deleted ones.

    `BoundMemory.remember` describes the rules; an adapter passes each message of its framework as a draft.

    Args:
        handle: The memory to store in.
        drafts: In order, of one session. A source key is made from a message id that is unique in the session; a draft
            without a source key is a message without an id. A stored message is updated from the draft with its id.
        now: The time of messages without one.
        embed: See `BoundMemory.add`.
        edits: True if a known id with another text is an edit; if not, what is stored stays as it is.
        ids_may_differ: True if a known message may come under another id, if a client makes new ids each time.
        context: The number of first drafts that only tell where the others belong, and are not stored.
    """
    context = len(all_in_own_words(drafts[:context]))
    drafts = all_in_own_words(drafts)
    if not drafts:
        return []
    scope, session = handle.scope, drafts[0].session
    given_keys = [draft.source_key for draft in drafts]
    by_key = await stored_of(handle, [key for key in given_keys if key is not None])
    last: Sequence[MemoryRecord] = ()
    if session is not None and any(draft.source_key not in by_key for draft in drafts):
        last = await _last_messages(handle, session, len(drafts), are_aligned=ids_may_differ or None in given_keys)
    known = known_records(scope, drafts, last, ids_may_differ=ids_may_differ)
    keys = keys_of(scope, drafts, last, known)
    times = _times(drafts, known, now, last)
    fresh = [place for place in range(context, len(drafts)) if place not in known]
    same = _unchanged(drafts, fresh, by_key, edits=edits)
    due = [place for place in fresh if place not in same]
    new = [replace(drafts[place], source_key=keys[place], occurred_at=times[place]) for place in due]
    written = await handle.add_many(new, embed=embed) if new else []
    stored = known | same | {place: record for place, record in zip(due, written, strict=True) if record is not None}
    return await _in_order(handle, stored, [place for place in fresh if drafts[place].occurred_at is None])


def reachable(scope: Scope, drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts with source keys that are unique to the agent and the collection of a scope."""
    keys = (None if draft.source_key is None else key_in_scope(scope, draft.source_key) for draft in drafts)
    return [replace(draft, source_key=key) for draft, key in zip(drafts, keys, strict=True)]


def _unchanged(
    drafts: Sequence[Draft], places: Sequence[int], by_key: Mapping[str, MemoryRecord], *, edits: bool
) -> dict[int, MemoryRecord]:
    """Messages whose records stay as they are, so that the store need not be given them again."""
    stored = {place: record for place in places if (record := by_key.get(drafts[place].source_key or "")) is not None}
    if not edits:
        return stored
    same = {place: record for place, record in stored.items() if is_same(record, drafts[place])}
    changed = {drafts[place].source_key for place in places if place not in same}  # a key may occur twice
    return {place: record for place, record in same.items() if record.source_key not in changed}


async def stored_of(handle: Storing, keys: Sequence[str]) -> dict[str, MemoryRecord]:
    """The records of the given source keys that are stored."""
    found: dict[str, MemoryRecord] = {}
    for at in range(0, len(keys), MAX_LISTED):
        some = tuple(dict.fromkeys(keys[at : at + MAX_LISTED]))
        page = await handle.list(where=replace(ANY_STATE, source_keys=some), limit=len(some))
        found |= {record.source_key: record for record in page.records if record.source_key is not None}
    return found


async def _last_messages(handle: Storing, session: str, given: int, *, are_aligned: bool) -> Sequence[MemoryRecord]:
    """The last messages of a conversation, in order, without deleted ones: those that messages without ids may equal,
    or only the one that new ones follow."""
    limit = min(max(LOOK_BACK, 2 * given), _MOST) if are_aligned else 1
    where = replace(ANY_STATE, session=session, kinds=(MESSAGE_KIND,))
    page = await handle.list(where=where, order="newest", limit=limit)
    return page.records[::-1]


def _times(
    drafts: Sequence[Draft], known: Mapping[int, MemoryRecord], now: datetime, last: Sequence[MemoryRecord]
) -> list[datetime]:
    """The time of each message: its own, or else now, or a time next to the known messages around it."""
    times: list[datetime] = []
    last_known = max(known, default=-1)
    latest = max([now, *(shifted(record.occurred_at, STEP) for record in last[-1:])])
    first = min((shifted(record.occurred_at, -place * STEP) for place, record in known.items()), default=latest)
    for place, draft in enumerate(drafts):
        given = known[place].occurred_at if place in known else draft.occurred_at
        if given is None:
            after = shifted(times[-1], STEP) if times else first
            given = after if place < last_known else max(after, latest)
        times.append(given)
    return times


async def _in_order(
    handle: Storing, stored: Mapping[int, MemoryRecord], movable: Collection[int]
) -> list[MemoryRecord]:
    """The records in the order of their messages; movable ones get a later time than those before them.

    Another process that passed the same conversation at the same time may have given some of them its own time.
    """
    records: list[MemoryRecord] = []
    for place in sorted(stored):
        record, before = stored[place], records[-1].occurred_at if records else None
        if place in movable and before is not None and record.occurred_at <= before:
            record = await handle.update(record.id, Patch(occurred_at=shifted(before, STEP)))
        records.append(record)
    return records
