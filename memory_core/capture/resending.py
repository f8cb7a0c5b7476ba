"""Which messages of a conversation are known already, although they carry no ids: pure functions.

Clients of chat APIs send the whole conversation again with every message, or its last messages, and repeat a request
whose answer they did not see. So the messages handed over are laid beside the last messages stored: the place where
they continue each other best says which of them are new. A new message is named by what it says and by the message
before it, so that two processes that see the same conversation give it the same name. The decision page
`docs/decisions/0005-messages-without-ids.md` has the cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

Said = tuple[str, ...]
"""What a message is recognised by: its role, its text without regard to spaces, and its time where all have one."""

LOOK_BACK: Final = 200
"""At least so many stored messages, and twice as many as are handed over, are looked at."""
_STARTS: Final = 3
"""The stored and the given messages continue each other from one of the first given messages on."""
_GIVE_UP: Final = -3
"""A comparison that has fallen so far behind is not followed further."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """How the given messages lie beside the stored ones."""

    score: int
    """Messages that agree, less those that stand between them on one side only."""
    known: dict[int, int]
    """By the place of a given message the place of the stored one that it is."""


def said(role: str | None, text: str, at: datetime | None = None) -> Said:
    """What a message is recognised by."""
    return (role or "", " ".join(text.split()), *(() if at is None else (at.astimezone(UTC).isoformat(),)))


def known_messages(given: Sequence[Said], stored: Sequence[Said], *, is_complete: bool) -> dict[int, int]:
    """Which given messages are stored already: by their place the place of the stored one.

    Args:
        given: The messages handed over, in order.
        stored: The last messages of the conversation, in order.
        is_complete: `stored` begins where the conversation began.
    """
    all_stored = frozenset(stored)
    best = _Fit(0, {})
    for start in range(min(_STARTS, len(given))):
        for place, message in enumerate(stored):
            if message == given[start]:
                found = _fit(given, stored, start, place, all_stored)
                best = found if found.score > best.score else best
    if not best.known and is_complete and given[:1] == stored[:1]:  # all of it again, edited or answered otherwise
        return _fit(given, stored, 0, 0, all_stored, give_up=False).known
    return best.known


def is_complete(stored: int, given: int) -> bool:
    """Whether so many messages, the last of a conversation, are all of it when so many are handed over."""
    return stored < max(LOOK_BACK, 2 * given)


def source_key(session: str, previous: str, message: Said) -> str:
    """The key of a message without an id: from the key of the message before it (empty for the first) and its own."""
    return "said:" + _digest(session, previous, *message)


def source_key_of_id(session: str, message_id: str) -> str:
    """The key of a message with an id of its own within the session."""
    return "message:" + _digest(session, message_id)


def kind_of_key(key: str | None) -> str:
    """Whose ids a source key is made of: those of one framework say nothing about those of another."""
    return (key or "").partition(":")[0]


def key_within(key: str, bounds: Sequence[str | None]) -> str:
    """A key for a handle that reaches a part of its owner's memories only, where others cannot meet it.

    Args:
        key: As it is for a handle that reaches all of them.
        bounds: What the handle is bound to beside the owner; `None` for what it is not bound to.
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
    """Lay the given messages from `start` on beside the stored ones from `place` on."""
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
    """A hash of the parts, none of which can run over into the next."""
    return hashlib.sha256(b"".join(hashlib.sha256(part.encode()).digest() for part in parts)).hexdigest()
