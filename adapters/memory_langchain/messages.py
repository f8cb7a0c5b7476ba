"""LangChain's messages as records, and back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from memory_core import Draft, InvalidInputError, MemoryRecord, Role

try:
    from langchain_core.messages import (
        BaseMessage,
        ChatMessage,
        HumanMessage,
        SystemMessage,
        convert_to_messages,
        message_chunk_to_message,
        messages_from_dict,
    )
    from langchain_core.messages.ai import AIMessage
    from langchain_core.prompt_values import PromptValue
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

if TYPE_CHECKING:
    from memory_core import Json
    from memory_langchain.scope import CallScope

MESSAGE_KIND: Final = "message"
"""The kind of a record that is a turn of a conversation."""

SUMMARY_KIND: Final = "summary"
"""The kind of a record that tells what a conversation was about."""
SUMMARY_DATA: Final = {"summary_by": "langchain"}
"""In the data of summaries that this package wrote."""

_DATA_KEY: Final = "langchain"
"""Where in `data` the message itself stands; a turn another framework captured has none."""

MAX_SEARCHABLE_CHARS: Final = 100_000
"""How much of one message is found by search; what is beyond it comes back with the message. An embedder takes seconds
for this much, and whoever writes to an agent chooses how much it is."""
MAX_AUTHOR_CHARS: Final = 512
"""The core's longest key."""

_LEFT_OUT: Final[Mapping[str, object]] = {
    "additional_kwargs": {},
    "response_metadata": {},
    "name": None,
    "id": None,
    "tool_calls": [],
    "invalid_tool_calls": [],
    "usage_metadata": None,
}
"""Fields of messages with what they are when nobody gave one; a message without them is made again the same."""

_TYPES: Final = frozenset({"human", "ai", "system", "chat", "function", "tool", "remove"})
"""The kinds of message that `messages_from_dict` can make again."""

_ROLES: Final[Mapping[str, Role]] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
"""Who speaks, by the type of a message or, in a `ChatMessage`, by the role that a provider's API knows."""


def to_draft(message: object, scope: CallScope, *, source_key: str | None) -> Draft:
    """A message as something to remember: exact in `data`, readable and searchable in `text`.

    The author is the message's own name, else the user for what the user said and the agent for what a model said.
    What tools answered, instructions and removals have no text: they come back with the history but never as a memory.
    The role is that of the message; a removal has none, and neither has a `ChatMessage` of a role nobody else knows.

    Raises:
        TypeError: Not a message, or of a kind of its own that could never be read again.
        InvalidInputError: Something in it is nested too deeply, or contains itself.
    """
    if not isinstance(message, BaseMessage):
        raise TypeError(f"a history holds messages, not {type(message).__name__}: {message!r:.80}")
    message = message_chunk_to_message(message)
    if message.type not in _TYPES:
        raise TypeError(f"a message of type {message.type!r} cannot be made again; the types are {sorted(_TYPES)}")
    return Draft(
        searchable_text(message),
        role=role_of(message),
        kind=MESSAGE_KIND,
        author=_author(message, scope),
        agent=scope.agent,
        session=scope.session,
        source_key=source_key,
        data={_DATA_KEY: {"type": message.type, "data": _fields(message)}},
    )


def role_of(message: BaseMessage) -> Role | None:
    """Who speaks in a message."""
    return _ROLES.get(message.role.casefold() if isinstance(message, ChatMessage) else message.type)


def to_message(record: MemoryRecord) -> BaseMessage:
    """The message of a record.

    A text that was changed since, through whatever framework, replaces the text of the message. A turn that another
    framework captured, or that holds no message which can be read, becomes a human, an AI or a system message by its
    role, or by its author where it has none. What a tool returned becomes an AI message: nothing in the history called
    the tool, and models refuse results of calls they do not see.
    """
    message = _stored(record)
    if message is None:
        return _foreign(record)
    if record.rev > 1 and record.text != searchable_text(message):
        return message.model_copy(update={"content": _with_text(message, record.text)})
    return message


def message_id(record: MemoryRecord) -> str | None:
    """The id of the message a record holds, if it has one."""
    given = record.data.get(_DATA_KEY)
    inner = given.get("data") if isinstance(given, Mapping) else None
    found = inner.get("id") if isinstance(inner, Mapping) else None
    return found if isinstance(found, str) else None


def key_of_message(session: str, identity: str) -> str:
    """The idempotency key of a message id within a conversation."""
    return f"langchain:{hashlib.sha256(json.dumps([session, identity]).encode()).hexdigest()}"


def searchable_text(message: BaseMessage) -> str:
    """What search finds a message by: what a person or a model said, without halves of characters."""
    if not isinstance(message, HumanMessage | AIMessage | ChatMessage):
        return ""
    return _storable(message.text, MAX_SEARCHABLE_CHARS)


def to_messages(value: object, *, role: type[HumanMessage | AIMessage]) -> list[BaseMessage]:
    """What goes into a chain or comes out of it as messages; a string speaks for `role`.

    Raises:
        TypeError: It is neither text, nor a message, nor a sequence of messages.
    """
    if isinstance(value, str):
        return [role(value)]
    if isinstance(value, BaseMessage):
        return [message_chunk_to_message(value)]
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, Sequence):
        return [message_chunk_to_message(message) for message in convert_to_messages(cast("Sequence[str]", value))]
    raise TypeError(f"expected text, a message or messages, not {type(value).__name__}: {value!r:.80}")


def _fields(message: BaseMessage) -> Json:
    try:
        given = message.model_dump()
        return jsonable({name: value for name, value in given.items() if not _is_left_out(name, value)})
    except (RecursionError, ValueError) as cause:  # pydantic calls what contains itself a ValueError
        raise InvalidInputError(f"a message of type {message.type!r} cannot be stored as JSON: {cause}") from cause


def _is_left_out(name: str, value: object) -> bool:
    return name in _LEFT_OUT and value == _LEFT_OUT[name]


def jsonable(value: object) -> Json:
    """`value` as JSON: exactly, where JSON can hold it; as text, where it cannot (an artifact of a tool, say)."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {key if isinstance(key, str) else str(key): jsonable(item) for key, item in pairs.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in cast("Sequence[object]", value)]
    return str(value)


def _author(message: BaseMessage, scope: CallScope) -> str | None:
    if message.name is not None and message.name.strip():
        return _as_author(message.name)
    if isinstance(message, HumanMessage):
        return scope.user
    if isinstance(message, AIMessage):
        return scope.agent or "assistant"
    return _as_author(message.role) if isinstance(message, ChatMessage) else None


def _as_author(name: str) -> str | None:
    return _storable(name.replace("\0", ""), MAX_AUTHOR_CHARS).strip() or None


def _storable(text: str, limit: int) -> str:
    return text[:limit].encode(errors="replace").decode()


def _stored(record: MemoryRecord) -> BaseMessage | None:
    """The message a record holds, if it holds one: one bad record must not make a conversation unreadable."""
    given = record.data.get(_DATA_KEY)
    if not isinstance(given, Mapping):
        return None
    try:
        return messages_from_dict([cast("dict[str, object]", given)])[0]
    except (AttributeError, KeyError, TypeError, ValueError):  # whatever LangChain's classes make of bad data
        return None


def _foreign(record: MemoryRecord) -> BaseMessage:
    if record.role == "system":
        return SystemMessage(record.text)
    if record.role is None:
        by_user = record.author is None or record.author in {record.user, "user", "human"}
    else:
        by_user = record.role == "user"
    return (HumanMessage if by_user else AIMessage)(record.text)


def _with_text(message: BaseMessage, text: str) -> str | list[str | dict[str, object]]:
    """The content with its text blocks replaced by one; pictures and the like stay."""
    if isinstance(message.content, str):
        return text
    others = [block for block in message.content if isinstance(block, dict) and block.get("type") != "text"]
    return [{"type": "text", "text": text}, *others]
