"""Find the messages of a conversation that are already stored, by id, time and position: pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from memory_core.capture.alignment import (
    Said,
    is_complete,
    key_within,
    kind_of_key,
    known_messages,
    said,
    source_key,
)
from memory_core.capture.message_to_draft import MESSAGE_KIND
from memory_core.models import Draft, MemoryRecord, Scope

_FEWEST: Final = 2
"""Least number of equal messages that shows that a conversation with ids and one without are the same."""


def known_records(
    drafts: Sequence[Draft], last: Sequence[MemoryRecord], known_keys: Collection[str]
) -> dict[int, MemoryRecord]:
    """Find stored messages that do not have the draft's own source key: the record of each, by position in `drafts`.

    Args:
        drafts: The messages passed by the caller, in order.
        last: The last stored messages of the conversation, in order.
        known_keys: The source keys of drafts that are stored.
    """
    found = _at_the_same_moment(drafts, last, known_keys)
    if any(draft.source_key is None for draft in drafts):
        return found | _at_the_same_place(drafts, last)
    return found | _without_ids(drafts, last, known_keys)


def keys_of(
    scope: Scope, drafts: Sequence[Draft], last: Sequence[MemoryRecord], known: Mapping[int, MemoryRecord]
) -> list[str]:
    """The source key of each message: that of its record, its own, or one made of its text and the key before it."""
    timed = _are_timed(drafts)
    places = {record.id: place for place, record in enumerate(last)}
    before = min((places[record.id] for record in known.values()), default=len(last)) - 1
    previous = key_of(last[before]) if before >= 0 else ""
    keys: list[str] = []
    for place, draft in enumerate(drafts):
        if place in known:
            previous = key_of(known[place])
        elif draft.source_key is not None:
            previous = draft.source_key
        else:
            previous = key_behind(scope, previous, draft, timed=timed)
        keys.append(previous)
    return keys


def key_behind(scope: Scope, previous: str, draft: Draft, *, timed: bool = False) -> str:
    """The source key of a message without an id that follows the message with the key `previous`."""
    return within(scope, source_key(draft.session or "", previous, _said(draft, timed=timed)))


def within(scope: Scope, key: str) -> str:
    """A source key made unique to the agent and the collection that the scope is bound to."""
    return key_within(key, (scope.agent, scope.collection))


def key_of(record: MemoryRecord) -> str:
    """The key of a stored message from which the key of the next message is made."""
    return record.source_key or record.id


def _at_the_same_moment(
    drafts: Sequence[Draft], last: Sequence[MemoryRecord], known_keys: Collection[str]
) -> dict[int, MemoryRecord]:
    """Messages with an unknown id but the speaker, the text and the microsecond of a stored one: the framework has
    changed their id."""
    stored = {_moment(record): record for record in last}
    unknown = (at for at, draft in enumerate(drafts) if draft.source_key not in (None, *known_keys))
    return {place: stored[moment] for place in unknown if (moment := _moment(drafts[place])) in stored}


def _moment(message: Draft | MemoryRecord) -> tuple[object, ...]:
    return message.kind, message.role, message.author, message.text, message.occurred_at


def _at_the_same_place(drafts: Sequence[Draft], last: Sequence[MemoryRecord]) -> dict[int, MemoryRecord]:
    """Messages without ids that continue what is stored."""
    stored_keys = {record.source_key for record in last}
    places = [at for at, draft in enumerate(drafts) if draft.source_key is None or draft.source_key in stored_keys]
    own_keys = {draft.source_key for draft in drafts if draft.source_key is not None}
    timed = _are_timed(drafts)
    given = [_token(drafts[place], own_keys, timed=timed) for place in places]
    stored = [_token(record, own_keys, timed=timed) for record in last]
    found = known_messages(given, stored, is_complete=is_complete(len(last), len(drafts)))
    pairs = ((places[at], last[place]) for at, place in found.items())
    return {place: record for place, record in pairs if drafts[place].source_key is None}


def _without_ids(
    drafts: Sequence[Draft], last: Sequence[MemoryRecord], known_keys: Collection[str]
) -> dict[int, MemoryRecord]:
    """Messages with unknown ids that were stored before without ids, or with ids of another framework: at least two of
    a conversation."""
    if any(draft.kind != MESSAGE_KIND for draft in drafts):
        return {}
    own = {kind_of_key(draft.source_key) for draft in drafts}
    candidates = [r for r in last if r.source_key in known_keys or kind_of_key(r.source_key) not in own]
    given = [_token(draft, known_keys, timed=False) for draft in drafts]
    stored = [_token(record, known_keys, timed=False) for record in candidates]
    found = known_messages(given, stored, is_complete=is_complete(len(last), len(drafts)))
    new = {at: candidates[place] for at, place in found.items() if drafts[at].source_key not in known_keys}
    return new if len(new) >= _FEWEST else {}


def _token(message: Draft | MemoryRecord, keys: Collection[str | None], *, timed: bool) -> Said:
    """The value that identifies a message: its id if both sides have it, otherwise its content."""
    if message.source_key is not None and message.source_key in keys:
        return ("id", message.source_key)
    return _said(message, timed=timed)


def _said(message: Draft | MemoryRecord, *, timed: bool) -> Said:
    return said(message.role, message.text, message.occurred_at if timed else None)


def _are_timed(drafts: Sequence[Draft]) -> bool:
    """Whether all messages without ids have a time."""
    return all(draft.occurred_at is not None for draft in drafts if draft.source_key is None)
