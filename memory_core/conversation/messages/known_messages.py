"""Find the messages of a conversation that are already stored, by id, time and position: pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

from memory_core.conversation.messages.alignment import (
    ANSWERS,
    Said,
    identity_by_id,
    identity_by_words,
    is_complete,
    key_within,
    kind_of_key,
    known_messages,
    source_key,
    source_key_in,
)
from memory_core.models import Draft, MemoryRecord, Scope

_MOST_DELETED: Final = 50
"""Most deleted messages in a row that are recognised."""
_MOST_GAPS: Final = 20
"""Most places of a conversation at which messages may have been deleted."""


def known_records(
    scope: Scope, drafts: Sequence[Draft], last: Sequence[MemoryRecord], *, ids_may_differ: bool
) -> dict[int, MemoryRecord]:
    """The stored record of each message that is known without its id, by position in `drafts`.

    Args:
        scope: That of the handle.
        drafts: The messages passed by the caller, in order.
        last: The last stored messages of the conversation, in order.
        ids_may_differ: True if messages with an unknown id may be known as well.
    """
    stored = {record.source_key for record in last}
    without = {at for at, draft in enumerate(drafts) if draft.source_key is None}
    if ids_may_differ:
        without |= {at for at, draft in enumerate(drafts) if draft.source_key not in stored}
    asked = next((at for at in reversed(range(len(drafts))) if drafts[at].role == "user"), None)
    if asked is not None and asked not in without:  # what follows a question that is known by its id answers it now
        without -= set(range(asked + 1, len(drafts)))
    if not without:
        return {}
    places = [at for at, draft in enumerate(drafts) if at in without or draft.source_key in stored]
    found = _at_the_same_place(scope, [drafts[at] for at in places], last, is_complete(len(last), len(drafts)))
    return {places[at]: record for at, record in found.items() if places[at] in without}


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
    return key_in_scope(scope, source_key(draft.session or "", previous, _said(draft, timed=timed)))


@lru_cache(maxsize=10_000)  # of the messages that a prompt shows with each call of a model
def message_key(scope: Scope, framework: str, session: str, *identity: str) -> str:
    """The source key of a message that its framework tells apart from all others of its session by this identity, such
    as its id; unique to the agent and the collection that the scope is bound to."""
    return key_in_scope(scope, source_key_in(framework, session, *identity))


def key_in_scope(scope: Scope, key: str) -> str:
    """A source key made unique to the agent and the collection that the scope is bound to."""
    return key_within(key, (scope.agent, scope.collection))


def key_of(record: MemoryRecord) -> str:
    """The key of a stored message from which the key of the next message is made."""
    return record.source_key or record.id


def _at_the_same_place(
    scope: Scope,
    drafts: Sequence[Draft],
    last: Sequence[MemoryRecord],
    is_whole: bool,  # noqa: FBT001
) -> dict[int, MemoryRecord]:
    """The messages that continue what is stored, with their records."""
    stored_keys = {record.source_key for record in last}
    own_keys = {draft.source_key for draft in drafts} & stored_keys - {None}
    timed = all(draft.occurred_at is not None for draft in drafts if draft.source_key not in own_keys)
    given = [_token(draft, own_keys, timed=timed) for draft in drafts]
    gaps = _deleted_between(scope, drafts, last, timed=timed, is_complete=is_whole)
    stored: list[tuple[Said, MemoryRecord | None]] = []
    for at, record in enumerate(last):
        stored += ((given[place], None) for place in gaps.get(at, ()))
        stored.append((_token(record, own_keys, timed=timed), record))
    if not any(draft.role in ANSWERS for draft in drafts):  # a client that keeps only what its person says
        stored = [(token, record) for token, record in stored if record is None or record.role not in ANSWERS]
    found = known_messages(given, [token for token, _ in stored], is_complete=is_whole)
    pairs = ((at, stored[place][1]) for at, place in found.items())
    return {at: record for at, record in pairs if record is not None}


def _deleted_between(
    scope: Scope, drafts: Sequence[Draft], last: Sequence[MemoryRecord], *, timed: bool, is_complete: bool
) -> dict[int, range]:
    """Find the messages that were deleted from a conversation: positions in `drafts`, by that of the record after them.

    The key of a message is made of the key before it, so the key of the record after a gap tells what was in the gap.
    """
    gaps = [at for at in range(len(last)) if (at or is_complete) and not _follows(scope, last, at)]
    if len(gaps) > _MOST_GAPS:  # their keys were made in another way
        return {}
    found = {at: _deleted_before(scope, drafts, last, at, timed=timed) for at in gaps}
    return {at: deleted for at, deleted in found.items() if deleted}


def _follows(scope: Scope, last: Sequence[MemoryRecord], at: int) -> bool:
    """True if the key of a record is made of that of the record before it, or not made of the key before it at all."""
    record, previous = last[at], key_of(last[at - 1]) if at else ""
    if kind_of_key(record.source_key) != "said":
        return True
    keys = (source_key(record.session or "", previous, _said(record, timed=timed)) for timed in (False, True))
    return any(
        key_in_scope(scope, key) == record.source_key for key in keys
    )  # mostly the first, and hashing takes time


def _deleted_before(
    scope: Scope, drafts: Sequence[Draft], last: Sequence[MemoryRecord], at: int, *, timed: bool
) -> range:
    before = last[at - 1] if at else None
    for start in range(len(drafts)):
        if start and (before is None or _said(drafts[start - 1], timed=False) != _said(before, timed=False)):
            continue
        key = "" if before is None else key_of(before)
        for end in range(start, min(start + _MOST_DELETED, len(drafts))):
            key = drafts[end].source_key or key_behind(scope, key, drafts[end], timed=timed)
            if key == last[at].source_key:
                return range(start, end)
    return range(0)


def _token(message: Draft | MemoryRecord, keys: Collection[str | None], *, timed: bool) -> Said:
    """The value that identifies a message: its id if both sides have it, otherwise its content."""
    if message.source_key is not None and message.source_key in keys:
        return identity_by_id(message.role, message.source_key)
    return _said(message, timed=timed)


def _said(message: Draft | MemoryRecord, *, timed: bool) -> Said:
    return identity_by_words(message.role, message.text, message.occurred_at if timed else None)


def _are_timed(drafts: Sequence[Draft]) -> bool:
    """True if all messages without ids have a time."""
    return all(draft.occurred_at is not None for draft in drafts if draft.source_key is None)
