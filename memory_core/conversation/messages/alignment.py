"""Find the known messages of a conversation without ids by aligning it with the stored messages: pure functions.

Clients of chat APIs resend the whole conversation, or its last messages, with every message, and repeat a request whose
answer they did not receive. So the given messages are aligned with the last stored ones; the best alignment shows which
of them are new. People say the same again, so a message that agrees proves nothing by itself: the evidence is a whole
turn (what the user says, up to and with the answers to it), or that the given messages go on where the stored ones end.

The source key of a new message is made of its content and the key of the message before it, so that two processes that
see the same conversation give it the same key. See `docs/decisions/0005-messages-without-ids.md` for the cases.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

from memory_core.conversation.messages.sent_files import without_files
from memory_core.values.frame import without_blocks

Said = tuple[str, ...]
"""The identity of a message. Its role comes first; then its text with normalised spaces, and its time if all messages
have one, or else its id."""

LOOK_BACK: Final = 200
"""Compare at least this many stored messages, and twice as many as are given."""
ANSWERS: Final = frozenset({"assistant", "tool"})
"""The roles of those who answer the user."""
_STARTS: Final = 3
"""An alignment starts at one of this many first given messages."""
_GIVE_UP: Final = -3
"""An alignment that is this far behind the best is abandoned."""


class _Talk:
    """Messages in order, with the turns they belong to."""

    def __init__(self, messages: Sequence[Said]) -> None:
        self.messages = messages
        self.all = frozenset(messages)
        self.turns = _turns(messages)
        """The number of the turn of each message."""
        self.sizes = Counter(self.turns)

    def whole(self, known: Collection[int]) -> set[int]:
        """The turns of which all messages are among these."""
        return {turn for turn, size in Counter(self.turns[at] for at in known).items() if size == self.sizes[turn]}


@dataclass(frozen=True, slots=True)
class _Fit:
    """An alignment of the given messages with the stored ones."""

    known: dict[int, int]
    """The position of the stored message, by the position of the given one, in order."""
    score: int
    """Number of equal messages, less those between them that are on one side only."""
    beginning: int = 0
    """Number of given messages, from the first one on, that are proved to be stored. It decides before the score, since
    what is passed before a new turn tells where the conversation goes on."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """The bound that no alignment from a given message on exceeds: people may say the same again and again, and trying
    every place would take long. Each given message that is stored nowhere, or follows such a one in its turn, costs
    one."""

    equal: int
    """The number of the other given messages."""
    on_the_way: int
    """The best score after any of the given messages."""
    at_the_end: int
    """The best score after all of them."""
    beginning: int
    """See `_Fit.beginning`."""

    def of(self, rest: int) -> tuple[int, int]:
        """The beginning and the score if `rest` stored messages are left: these or the given ones come to an end."""
        ends_before = min(self.on_the_way, 2 * self.equal - rest)  # what is not equal of them costs one each
        return min(self.beginning, rest), min(rest, max(self.at_the_end, ends_before))


def identity_by_words(role: str | None, text: str, at: datetime | None = None) -> Said:
    """The identity of a message without an id: what was said, whether or not the files sent with it are named, and
    whether or not a block of ours stands beside it."""
    said_by_them = without_blocks(text)
    words = " ".join((without_files(said_by_them) if role == "user" else said_by_them).split())
    return (role or "", words, *(() if at is None else (at.astimezone(UTC).isoformat(),)))


def identity_by_id(role: str | None, identity: str) -> Said:
    """The identity of a message that has an id on both sides."""
    return (role or "", identity, "id")


def known_messages(given: Sequence[Said], stored: Sequence[Said], *, is_complete: bool) -> dict[int, int]:
    """Find the given messages that are stored: the position of the stored one, by the position of the given one.

    Of a single turn, either all messages are known, and those within one stored turn, or those that the stored messages
    end with, or none.

    Args:
        given: The messages passed by the caller, in order.
        stored: The last stored messages of the conversation, in order.
        is_complete: True if `stored` starts at the beginning of the conversation.
    """
    new, old = _Talk(given), _Talk(stored)
    best = _Fit({}, 0)
    for start in range(min(_STARTS, len(given))):
        limit = _limit(new, old, start)
        for place, message in enumerate(stored):
            if message == given[start] and limit.of(len(stored) - place) > (best.beginning, best.score):
                found = _weighed(_fit(new, old, start, place), new, old)
                if found.score > 0 and (found.beginning, found.score) > (best.beginning, best.score):
                    best = found
    if not best.known and is_complete and given and given[:1] == stored[:1]:
        again = _fit(new, old, 0, 0, give_up=False)  # the whole conversation, edited or with deleted messages
        if 0 in new.whole(again.known) or (len(again.known) == len(stored) and new.turns[-1] > 0):
            return again.known
    return best.known


def is_complete(stored: int, given: int) -> bool:
    """True if `stored` messages are the whole conversation, if they were read to compare `given` messages."""
    return stored < max(LOOK_BACK, 2 * given)


def source_key(session: str, previous: str, message: Said) -> str:
    """The key of a message without an id, from its identity and the key before it (empty for the first message)."""
    return "said:" + _digest(session, previous, *message)


def source_key_in(framework: str, session: str, *identity: str) -> str:
    """The key of a message that its framework tells apart from all other messages of the session by this identity."""
    return f"{framework}:" + _digest(session, *identity)


def source_key_of_id(session: str, message_id: str, speaker: str) -> str:
    """The key of a message with an id, which its speaker gives to no other message of the session: senders choose ids
    themselves, so those of two speakers may be equal."""
    return source_key_in("message", session, message_id, speaker)


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


def _turns(messages: Sequence[Said]) -> list[int]:
    """The number of the turn of each message: an answer ends what the user says. Where nobody answers, each message is
    a turn."""
    answers = [message[0] in ANSWERS for message in messages]
    turns: list[int] = []
    for place, is_answer in enumerate(answers):
        begins = place > 0 and not is_answer and (answers[place - 1] or not any(answers))
        turns.append((turns[-1] if turns else 0) + begins)
    return turns


def _limit(new: _Talk, old: _Talk, start: int) -> _Limit:
    worth: list[int] = []
    for at in range(start, len(new.messages)):
        follows_a_new_one = at > start and worth[-1] < 0 and new.turns[at - 1] == new.turns[at]
        worth.append(-1 if follows_a_new_one or new.messages[at] not in old.all else 1)
    scores = list(accumulate(worth, initial=-start))
    beginning = 0 if start else next((at for at, one in enumerate(worth) if one < 0), len(worth))
    return _Limit(worth.count(1), max(scores), scores[-1], beginning)


def _fit(new: _Talk, old: _Talk, start: int, place: int, *, give_up: bool = True) -> _Fit:
    """Align the given messages from `start` on with the stored ones from `place` on."""
    known: dict[int, int] = {}
    score = -start
    while start < len(new.messages) and place < len(old.messages) and (score > _GIVE_UP or not give_up):
        end = _end_of_reach(start, place, known, new, old)
        if place < end and new.messages[start] == old.messages[place]:
            known[start] = place
            score, start, place = score + 1, start + 1, place + 1
        elif new.messages[start] not in (old.all if end == len(old.messages) else old.messages[place:end]):
            score, start = score - 1, start + 1
        else:
            score, place = score - 1, place + 1
    return _Fit(known, score)


def _end_of_reach(start: int, place: int, known: dict[int, int], new: _Talk, old: _Talk) -> int:
    """The end of the stored messages that the given one at `start` can be: anywhere if it begins a turn, in the turn of
    the message before it if not, and nowhere if that one is new."""
    if not known or new.turns[start - 1] != new.turns[start]:
        return len(old.messages)
    return max(place, bisect_right(old.turns, old.turns[known[start - 1]])) if start - 1 in known else place


def _weighed(fit: _Fit, new: _Talk, old: _Talk) -> _Fit:
    """The alignment with its evidence: whole turns, and messages from the first one on that stored ones end with."""
    if fit.score <= 0:
        return fit
    whole = new.whole(fit.known)
    first = next(at for at in range(len(new.messages) + 1) if at not in fit.known)
    goes_on = first > 0 and fit.known[first - 1] == len(old.messages) - 1
    if not (whole or (goes_on and old.turns[fit.known[0]] == old.turns[-1])):
        return _Fit({}, 0)
    beginning = first if goes_on else sum(new.turns[at] in whole for at in range(first))
    unproven = sum(new.turns[at] not in whole for at in fit.known)
    return replace(fit, beginning=beginning, score=fit.score if goes_on else fit.score - unproven)


def _digest(*parts: str) -> str:
    """A hash of the parts that also depends on where each part ends."""
    return hashlib.sha256(b"".join(hashlib.sha256(part.encode()).digest() for part in parts)).hexdigest()
