"""A conversation as frameworks hand it over: as values of one kind, and as drafts. Pure functions.

A message is a `Message`, a pair `("user", "Which tea do I like?")`, or a mapping as in chat APIs:
`{"role": "user", "content": "Which tea do I like?"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, Final, cast

from memory_core.conversation.messages.alignment import source_key_of_id
from memory_core.conversation.messages.own_words import is_own_answer, names_of_calls
from memory_core.errors import InvalidInputError
from memory_core.models import ROLES, Draft, Json, Role
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.values.checks import check_key, check_text, check_time, shown

_ROLE_NAMES: Final[Mapping[str, Role]] = {
    **{role: role for role in ROLES},
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
    "developer": "system",
}
"""The names that chat APIs and frameworks use for the four roles."""

_PAIR: Final = 2

"""The kind of every message of a conversation."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by the model."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: `Message("Which tea do I like?", author="Ann")`."""

    text: str
    _: KW_ONLY
    role: Role = "user"
    author: str | None = None
    """The name of the person, agent or tool that wrote it, if it says more than the role."""
    occurred_at: datetime | None = None
    """The time, aware."""
    id: str | None = None
    """Its id, which its author gives to no other message of the session. A message with an id is recognised by it, one
    without by its position in the conversation."""
    tool_calls: Sequence[ToolCall] = ()
    """The tool calls of the model; their results are messages with the role `tool`."""


def read_messages(given: object) -> list[Message]:
    """The messages of a conversation, in order, each with a text or a tool call; instructions are left out.

    Raises:
        InvalidInputError: An item is not a message; the error gives its position, counted from 0.
    """
    wrong = given  # not narrowed by the next line, which leaves type checkers with half a type
    if isinstance(given, str | Mapping | Message) or not isinstance(given, Iterable):
        raise InvalidInputError(
            f"a conversation is a list of messages, such as [('user', 'I like tea')], not {shown(wrong)}"
        )
    messages: list[Message] = []
    tools: dict[str, str] = {}
    """The names of the tools that were called, by the ids of the calls."""
    for place, item in enumerate(cast("Iterable[object]", given)):
        try:
            message = _message(item)
        except InvalidInputError as error:
            raise type(error)(f"message {place}: {error}") from error
        tool = message.author
        if isinstance(item, Mapping):
            mapping = cast("Mapping[str, object]", item)
            tools |= names_of_calls(mapping.get("tool_calls"))
            tool = tool or tools.get(str(mapping.get("tool_call_id")))
        if message.role != "system" and message.text.strip() and not is_own_answer(message.role, tool):
            messages.append(message)
    return messages


def _message(item: object) -> Message:
    wrong = item
    if isinstance(item, Message):
        return _checked(item)
    if isinstance(item, Mapping):
        return _from_mapping(cast("Mapping[str, object]", item))
    if isinstance(item, tuple | list) and len(cast("Sequence[object]", item)) == _PAIR:
        role, text = cast("Sequence[object]", item)
        return _checked(Message(_text_of(text), role=_role(role)))
    raise InvalidInputError(
        f"a message is a Message, a pair such as ('user', 'I like tea') or a mapping with 'role' and 'content', "
        f"not {shown(wrong)}"
    )


def _from_mapping(item: Mapping[str, object]) -> Message:
    if "role" not in item:
        raise InvalidInputError(f"a mapping needs a 'role' ({', '.join(ROLES)}), which is missing in {shown(item)}")
    return _checked(
        Message(
            _text_of(item.get("content", item.get("text"))),
            role=_role(item["role"]),
            author=_optional_text(item.get("name", item.get("author"))),
            occurred_at=cast("datetime | None", item.get("occurred_at")),  # checked by `_checked`
            id=_optional_text(item.get("id")),
            tool_calls=_calls(item.get("tool_calls")),
        )
    )


def _checked(message: Message) -> Message:
    check_text("the text", message.text)
    _role(message.role)
    if message.author is not None:
        check_key("the author", message.author)
    if message.id is not None:
        check_key("the id", message.id)
    if message.occurred_at is not None:
        check_time("occurred_at", message.occurred_at)
    return message


def _role(given: object) -> Role:
    role = _ROLE_NAMES.get(given.casefold()) if isinstance(given, str) else None
    if role is None:
        raise InvalidInputError(f"the role must be one of {', '.join(_ROLE_NAMES)}, not {shown(given)}")
    return role


def _text_of(content: object) -> str:
    """The text of a message: its text parts, one per line. Images and other parts are left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        text = cast("Mapping[str, object]", content).get("text")
        return text if isinstance(text, str) else ""
    if isinstance(content, Sequence):
        return "\n".join(filter(None, map(_text_of, cast("Sequence[object]", content))))
    raise InvalidInputError(f"the content must be a text or a list of parts, not {shown(content)}")


def _optional_text(given: object) -> str | None:
    return None if given is None or given == "" else check_text("a name or id", given)


def _calls(given: object) -> tuple[ToolCall, ...]:
    """Tool calls of chat APIs: `{"function": {"name": ..., "arguments": "{...}"}}`, or only the inner mapping."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        return ()
    calls = (cast("Any", call) for call in cast("Sequence[object]", given) if isinstance(call, Mapping))
    inner = (call["function"] if isinstance(call.get("function"), Mapping) else call for call in calls)
    return tuple(
        ToolCall(call["name"], _arguments(call.get("arguments", call.get("args"))))
        for call in inner
        if isinstance(call.get("name"), str)
    )


def _arguments(written: object) -> Mapping[str, Json]:
    given: object = written
    if isinstance(written, str):
        try:
            given = json.loads(written)
        except ValueError:  # models may write invalid JSON
            return {"arguments": written}
    return dict(cast("Mapping[str, Json]", given)) if isinstance(given, Mapping) else {}


def message_drafts(messages: Iterable[Message], *, session: str, data: Mapping[str, Json]) -> list[Draft]:
    """The drafts of the messages of a conversation; those with ids have source keys.

    Args:
        messages: From `read_messages`.
        session: The session of the conversation.
        data: Added to every draft.
    """
    return [_draft(message, session, data) for message in messages]


def _draft(message: Message, session: str, data: Mapping[str, Json]) -> Draft:
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    speaker = message.author or message.role
    return Draft(
        message.text,
        role=message.role,
        kind=MESSAGE_KIND,
        author=message.author,
        session=session,
        occurred_at=message.occurred_at,
        source_key=None if message.id is None else source_key_of_id(session, message.id, speaker),
        data={**data, "tool_calls": calls} if calls else data,
    )
