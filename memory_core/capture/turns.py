"""Turn conversations into drafts of low resolution: one for each question and one for each exchange."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from memory_core.capture.messages import MESSAGE_KIND, Message
from memory_core.encoding import check_json, encode_json
from memory_core.limits import MAX_DATA_BYTES, MAX_TEXT_CHARS
from memory_core.models import Draft, Json, Role

USER_QUERY: Final = "user_query"
CONVERSATION_TURN: Final = "conversation_turn"


@dataclass(slots=True)
class _Turn:
    messages: list[Message] = field(default_factory=list[Message])
    is_answered: bool = False

    def of(self, role: Role) -> list[Message]:
        return [message for message in self.messages if message.role == role]


def turn_drafts(
    messages: Iterable[Message], *, session: str | None = None, data: Mapping[str, Json] | None = None
) -> list[Draft]:
    """Drafts of a conversation, in order: a `user_query` for each message of the user, and a `conversation_turn` for
    each exchange, `"User: …\\nAssistant: …"`, with both sides in its `data`.

    An exchange consists of the user's messages up to an answer and all answers up to the user's next message; without
    an answer there is no exchange. It has no role, because two speak in it and it carries its own context. Every other
    draft has the role of its message. Answers before any question, tool results and instructions become a `message`
    each. Blank texts are left out, and texts longer than a memory can be are cut.

    With ids, the same conversation can be captured again without duplicates; an exchange that has grown gets the new
    text.

    Args:
        messages: In order, of one session.
        session: Their session.
        data: Added to the data of every draft.

    Raises:
        InvalidInputError: `data` is not JSON, or too large.
    """
    shared = dict(data or {})
    drafts: list[Draft] = []
    for turn in _turns(message for message in messages if message.text.strip()):
        asked, answered = turn.of("user"), turn.of("assistant")
        alone = (message for message in turn.messages if not asked or message.role != "assistant")
        drafts += [_alone(message, session, shared) for message in alone]
        if asked and answered:
            drafts.append(_exchange(asked, answered, session, shared))
    return drafts


def _turns(messages: Iterable[Message]) -> Iterator[_Turn]:
    turn = _Turn()
    for message in messages:
        if message.role == "user" and turn.is_answered:
            yield turn
            turn = _Turn()
        turn.messages.append(message)
        turn.is_answered |= message.role == "assistant"
    if turn.messages:
        yield turn


def _alone(message: Message, session: str | None, data: Mapping[str, Json]) -> Draft:
    kind = USER_QUERY if message.role == "user" else MESSAGE_KIND
    return Draft(
        message.text.strip()[:MAX_TEXT_CHARS],
        role=message.role,
        kind=kind,
        author=message.author or message.role,
        agent=message.author if message.role == "assistant" else None,
        session=session,
        occurred_at=message.occurred_at,
        source_key=_source_key(kind, session, message),
        data=data,
    )


def _exchange(
    asked: Sequence[Message], answered: Sequence[Message], session: str | None, data: Mapping[str, Json]
) -> Draft:
    question, answer = _joined(asked), _joined(answered)
    return Draft(
        f"User: {question}\nAssistant: {answer}"[:MAX_TEXT_CHARS],
        kind=CONVERSATION_TURN,
        agent=answered[-1].author,
        session=session,
        occurred_at=asked[0].occurred_at,
        source_key=_source_key(CONVERSATION_TURN, session, asked[0]),
        data=_with_both_sides(question, answer, data),
    )


def _with_both_sides(question: str, answer: str, data: Mapping[str, Json]) -> dict[str, Json]:
    """`data` with both sides of an exchange, cut to fit, the longer side first."""
    empty, size = check_json("data", {**data, "user_message": "", "agent_response": ""}, MAX_DATA_BYTES)
    room = MAX_DATA_BYTES - size
    asked, answered = _bytes(question), _bytes(answer)
    asked = min(asked, max(room // 2, room - answered))
    return {**empty, "user_message": _cut(question, asked), "agent_response": _cut(answer, min(answered, room - asked))}


def _bytes(text: str) -> int:
    """The number of bytes of a text as a JSON string, without the quotes."""
    return len(encode_json(text)) - 2


def _cut(text: str, most: int) -> str:
    """The longest beginning of a text that has at most `most` bytes as a JSON string."""
    shortened = text[:most]  # each character has at least one byte
    if _bytes(shortened) <= most:
        return shortened
    return shortened[: bisect_right(range(len(shortened)), most, key=lambda last: _bytes(shortened[: last + 1]))]


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.text.strip() for message in messages)


def _source_key(kind: str, session: str | None, message: Message) -> str | None:
    if message.id is None:
        return None
    return f"{kind}:" + hashlib.sha256(f"{session or ''}\0{message.id}".encode()).hexdigest()
