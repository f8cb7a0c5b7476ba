"""Find the known messages of a conversation without ids by aligning it with the stored messages: pure functions.

Clients of chat APIs resend the whole conversation, or its last messages, with every message, and repeat a request whose
answer they did not receive. So the given messages are aligned with the last stored ones; the best alignment shows which
of them are new. The source key of a new message is made of its content and the key of the message before it, so that
two processes that see the same conversation give it the same key. See
`docs/decisions/0005-messages-without-ids.md` for the cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

Said = tuple[str, ...]
"""The identity of a message: its role, its text with normalised spaces, and its time if all messages have one."""

LOOK_BACK: Final = 200
"""Compare at least this many stored messages, and twice as many as are given."""
_STARTS: Final = 3
"""An alignment starts at one of this many first given messages."""
_GIVE_UP: Final = -3
"""An alignment that is this far behind the best is abandoned."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """An alignment of the given messages with the stored ones."""

    score: int
    """Number of equal messages, less those between them that are on one side only."""
    known: dict[int, int]
    """The position of the stored message, by the position of the given one."""


def said(role: str | None, text: str, at: datetime | None = None) -> Said:
    """The identity of a message."""
    return (role or "", " ".join(text.split()), *(() if at is None else (at.astimezone(UTC).isoformat(),)))


def known_messages(given: Sequence[Said], stored: Sequence[Said], *, is_complete: bool) -> dict[int, int]:
    """Find the given messages that are stored: the position of the stored one, by the position of the given one.

    Args:
        given: The messages passed by the caller, in order.
        stored: The last stored messages of the conversation, in order.
        is_complete: Whether `stored` starts at the beginning of the conversation.
    """
    all_stored = frozenset(stored)
    best = _Fit(0, {})
    for start in range(min(_STARTS, len(given))):
        for place, message in enumerate(stored):
            if message == given[start]:
                found = _fit(given, stored, start, place, all_stored)
                best = found if found.score > best.score else best
    if not best.known and is_complete and given[:1] == stored[:1]:  # resent with edits or another answer
        return _fit(given, stored, 0, 0, all_stored, give_up=False).known
    return best.known


def is_complete(stored: int, given: int) -> bool:
    """Whether `stored` messages are the whole conversation, if they were read to compare `given` messages."""
    return stored < max(LOOK_BACK, 2 * given)


def source_key(session: str, previous: str, message: Said) -> str:
    """The key of a message without an id, from its identity and the key before it (empty for the first message)."""
    return "said:" + _digest(session, previous, *message)


def source_key_of_id(session: str, message_id: str) -> str:
    """The key of a message with an id, which is unique within the session."""
    return "message:" + _digest(session, message_id)


def kind_of_key(key: str | None) -> str:
    """The framework whose ids a source key is made of; ids of different frameworks cannot be compared."""
    return (key or "").partition(":")[0]


def key_within(key: str, bounds: Sequence[str | None]) -> str:
    """Make a key unique to a handle that reaches only a part of its owner's memories.

    Args:
        key: The key for a handle that reaches all of them.
        bounds: The names the handle is bound to beside the owner; `None` where it is not bound.
    """
    if not any(bounds):
        return key
    kind, _, digest = key.rpartition(":")
    return f"{kind}:" + _digest(digest, *(f"={bound}" if bound else "" for bound in bounds))


def _fit(
    given: Sequence[Said],
    stored: Sequence[Said],
    start: int,
    place: int,
    all_stored: frozenset[Said],
    *,
    give_up: bool = True,
) -> _Fit:
    """Align the given messages from `start` on with the stored ones from `place` on."""
    known: dict[int, int] = {}
    score = -start
    while start < len(given) and place < len(stored) and (score > _GIVE_UP or not give_up):
        if given[start] == stored[place]:
            known[start] = place
            score, start, place = score + 1, start + 1, place + 1
        elif given[start] not in all_stored:
            score, start = score - 1, start + 1
        else:
            score, place = score - 1, place + 1
    return _Fit(score, known)


def _digest(*parts: str) -> str:
    """A hash of the parts that also depends on where each part ends."""
    return hashlib.sha256(b"".join(hashlib.sha256(part.encode()).digest() for part in parts)).hexdigest()
