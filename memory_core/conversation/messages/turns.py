"""Turn conversations into drafts of low resolution: one for each exchange."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core.conversation.messages.message_to_draft import Message, in_words_of_speakers
from memory_core.models import Draft, Json, Role
from memory_core.records.kinds import CONVERSATION_TURN, MESSAGE_KIND, USER_QUERY
from memory_core.values.json_checks import check_json
from memory_core.values.json_text import cut_to_bytes, text_bytes
from memory_core.values.limits import MAX_DATA_BYTES, MAX_TEXT_CHARS


@dataclass(slots=True)
class _Turn:
    messages: list[Message] = field(default_factory=list[Message])
    is_answered: bool = False

    def of(self, role: Role) -> list[Message]:
        return [message for message in self.messages if message.role == role]


def turn_drafts(
    messages: Iterable[Message], *, session: str | None = None, data: Mapping[str, Json] | None = None
) -> list[Draft]:
    """Drafts of a conversation, in order, with every message in one of them, so that one deletion forgets a message.

    What the user says up to an answer, with all answers up to the user's next message, is a `conversation_turn`,
    `"User: …\\nAssistant: …"`, with both sides in its `data`; without an answer yet it is a `user_query`. Neither has a
    role, because two speak in a turn. Answers before any question, tool results and instructions become a `message`
    each, with its role. Blank texts are left out, and texts longer than a memory can be are cut.

    With ids, the same conversation can be captured again without duplicates; a turn that has grown gets the new text.

    Args:
        messages: In order, of one session.
        session: Their session.
        data: Added to the data of every draft.

    Raises:
        InvalidInputError: `data` is not JSON, or too large.
    """
    shared = dict(data or {})
    drafts: list[Draft] = []
    for turn in _turns(in_words_of_speakers(messages)):
        asked, answered = turn.of("user"), turn.of("assistant")
        for message in turn.messages:
            if asked and message is asked[0]:
                drafts.append(_exchange(asked, answered, session, shared))
            elif not asked or message.role not in ("user", "assistant"):
                drafts.append(_alone(message, session, shared))
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
    return Draft(
        message.text.strip()[:MAX_TEXT_CHARS],
        role=message.role,
        kind=MESSAGE_KIND,
        author=message.author or message.role,
        agent=message.author if message.role == "assistant" else None,
        session=session,
        occurred_at=message.occurred_at,
        source_key=_source_key(MESSAGE_KIND, session, message),
        data=data,
    )


def _exchange(
    asked: Sequence[Message], answered: Sequence[Message], session: str | None, data: Mapping[str, Json]
) -> Draft:
    question, answer = _joined(asked), _joined(answered)
    return Draft(
        f"User: {question}\nAssistant: {answer}"[:MAX_TEXT_CHARS] if answered else question[:MAX_TEXT_CHARS],
        kind=CONVERSATION_TURN if answered else USER_QUERY,
        agent=answered[-1].author if answered else None,
        session=session,
        occurred_at=asked[0].occurred_at,
        source_key=_source_key(CONVERSATION_TURN, session, asked[0]),
        data=_with_both_sides(question, answer, data),
    )


def _with_both_sides(question: str, answer: str, data: Mapping[str, Json]) -> dict[str, Json]:
    """`data` with both sides of an exchange, cut to fit, the longer side first."""
    empty, size = check_json("data", {**data, "user_message": "", "agent_response": ""}, MAX_DATA_BYTES)
    room = MAX_DATA_BYTES - size
    asked, answered = text_bytes(question), text_bytes(answer)
    asked = min(asked, max(room // 2, room - answered))
    sides = {"user_message": cut_to_bytes(question, asked), "agent_response": cut_to_bytes(answer, room - asked)}
    return {**empty, **sides}


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.text.strip() for message in messages)


def _source_key(kind: str, session: str | None, message: Message) -> str | None:
    if message.id is None:
        return None
    speaker = message.author or message.role  # ids are unique for each speaker only
    return f"{kind}:" + hashlib.sha256(f"{session or ''}\0{message.id}\0{speaker}".encode()).hexdigest()
