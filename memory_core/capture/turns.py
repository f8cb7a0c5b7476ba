"""Conversations as memories of low resolution: each question by itself, and each exchange as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Final, Literal

from memory_core.limits import MAX_TEXT_CHARS
from memory_core.models import Draft, Json

USER_QUERY: Final = "user_query"
CONVERSATION_TURN: Final = "conversation_turn"
MESSAGE: Final = "message"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    text: str
    _: KW_ONLY
    role: Literal["user", "assistant"] = "user"
    author: str | None = None
    """Who wrote it, where that says more than the role."""
    at: datetime | None = None
    """When, aware."""
    key: str | None = None
    """Its id within the session. With one, the same conversation can be captured again and nothing is doubled; an
    exchange that has grown since takes the new text."""


@dataclass(slots=True)
class _Turn:
    asked: list[Message] = field(default_factory=list[Message])
    answered: list[Message] = field(default_factory=list[Message])


def turn_drafts(
    messages: Iterable[Message], *, session: str | None = None, data: Mapping[str, Json] | None = None
) -> list[Draft]:
    """Drafts of a conversation, in order: a `user_query` for each message of the user, and a `conversation_turn` for
    each exchange, `"User: …\\nAssistant: …"`, with both sides in its `data`.

    An exchange is what the user wrote without getting an answer, and all answers up to the next message of the user;
    without an answer there is none. Answers before any question become messages of their own. Blank texts are left
    out, and what is longer than a memory can be is cut.

    Args:
        messages: In order, of one session.
        session: Where they were written.
        data: Put into every draft beside what is there anyway.
    """
    shared = dict(data or {})
    drafts: list[Draft] = []
    for turn in _turns(message for message in messages if message.text.strip()):
        kinds = [USER_QUERY] * len(turn.asked) + ([] if turn.asked else [MESSAGE] * len(turn.answered))
        alone = turn.asked or turn.answered
        drafts += [_alone(message, kind, session, shared) for message, kind in zip(alone, kinds, strict=True)]
        if turn.asked and turn.answered:
            drafts.append(_exchange(turn, session, shared))
    return drafts


def _turns(messages: Iterable[Message]) -> Iterator[_Turn]:
    turn = _Turn()
    for message in messages:
        if message.role == "user" and turn.answered:
            yield turn
            turn = _Turn()
        (turn.asked if message.role == "user" else turn.answered).append(message)
    if turn.asked or turn.answered:
        yield turn


def _alone(message: Message, kind: str, session: str | None, data: Mapping[str, Json]) -> Draft:
    return Draft(
        message.text.strip()[:MAX_TEXT_CHARS],
        kind=kind,
        author=message.author or message.role,
        agent=message.author if message.role == "assistant" else None,
        session=session,
        occurred_at=message.at,
        source_key=_source_key(kind, session, message),
        data=data,
    )


def _exchange(turn: _Turn, session: str | None, data: Mapping[str, Json]) -> Draft:
    asked, answered = _joined(turn.asked), _joined(turn.answered)
    return Draft(
        f"User: {asked}\nAssistant: {answered}"[:MAX_TEXT_CHARS],
        kind=CONVERSATION_TURN,
        agent=turn.answered[-1].author,
        session=session,
        occurred_at=turn.asked[0].at,
        source_key=_source_key(CONVERSATION_TURN, session, turn.asked[0]),
        data={**data, "user_message": asked, "agent_response": answered},
    )


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.text.strip() for message in messages)


def _source_key(kind: str, session: str | None, message: Message) -> str | None:
    if message.key is None:
        return None
    return f"{kind}:" + hashlib.sha256(f"{session or ''}\0{message.key}".encode()).hexdigest()
