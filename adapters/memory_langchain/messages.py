"""Conversion between LangChain messages and records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

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
from pydantic_core import PydanticSerializationError, to_jsonable_python

from memory_core import Draft, InvalidInputError, MemoryRecord, Role
from memory_core.adapting import (
    FRAMEWORK_MESSAGE,
    MESSAGE_KIND,
    is_shortened,
    shortened_data,
    storable,
    with_files,
    without_files,
)
from memory_langchain.sent_files import files_in

if TYPE_CHECKING:
    from memory_core import Json
    from memory_langchain.scope import CallScope

_DATA_KEY: Final = "langchain"
"""Key in a record's `FRAMEWORK_MESSAGE` for the message itself; turns that another framework captured and corrections
do not have it."""

MAX_SEARCHABLE_CHARS: Final = 100_000
"""Searchable length of a message; the rest is stored and returned with the message but not searched. Senders control
the length of a message, and embedding this much text already takes seconds."""
_MAX_AUTHOR_CHARS: Final = 512
"""Longest key in the core."""

_PLACEHOLDER: Final = re.compile(r"\[[\w .,+/…-]{1,60}: too large to be remembered\]")
"""The text of a block of content that was too large, or of the rest of too many."""

_TYPES: Final = frozenset({"human", "ai", "system", "chat", "function", "tool"})
"""The types of the messages that a history has, as `messages_from_dict` can restore them."""

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
"""The role by message type or, for a `ChatMessage`, by the role name in a provider's API."""


def to_draft(message: object, scope: CallScope, *, source_key: str | None) -> Draft:
    """Convert a message to a draft: the exact message in `data`, its readable and searchable text in `text`.

    The author is the message's `name`, else the user for human messages and the agent for model messages. Tool results
    and instructions have no text: they are part of the history but never recalled as memories. A `ChatMessage` with a
    nonstandard role has no role. What of a message is too large is shortened.

    Raises:
        TypeError: It is not a message, or its custom type cannot be read back.
        InvalidInputError: A value contains itself.
    """
    if not isinstance(message, BaseMessage):
        raise TypeError(f"a history stores messages, not {type(message).__name__}: {message!r:.80}")
    message = message_chunk_to_message(message)
    if message.type not in _TYPES:
        raise TypeError(f"a message of type {message.type!r} cannot be restored; use one of {sorted(_TYPES)}")
    return Draft(
        searchable_text(message),
        role=role_of(message),
        kind=MESSAGE_KIND,
        author=_author(message, scope),
        agent=scope.agent,
        session=scope.session,
        source_key=source_key,
        data=shortened_data({FRAMEWORK_MESSAGE: {_DATA_KEY: {"type": message.type, "data": _fields(message)}}}),
    )


def role_of(message: BaseMessage) -> Role | None:
    """The role of the message's speaker."""
    return _ROLES.get(message.role.casefold() if isinstance(message, ChatMessage) else message.type)


def to_message(record: MemoryRecord) -> BaseMessage:
    """Convert a record to a message.

    If any framework changed the text, the new text replaces the text of the message. A turn that another framework
    captured, or whose message cannot be read, becomes a human, AI or system message according to its role or, without
    a role, its author. Such a turn of a tool becomes an AI message, because no message in the history called the tool
    and models reject results of calls they do not see.
    """
    message = _stored(record)
    if message is None:
        return _foreign(record)
    if record.rev > 1 and record.text not in (searchable_text(message), spoken_text(message)):
        return message.model_copy(update={"content": _with_text(message, record.text)})
    return message


def searchable_text(message: BaseMessage) -> str:
    """The text that search indexes: the words of a person or a model, and the names of the files that a person sent."""
    words = spoken_text(message)
    return with_files(words, files_in(message.content), MAX_SEARCHABLE_CHARS) if role_of(message) == "user" else words


def spoken_text(message: BaseMessage) -> str:
    """The words of a person or a model, without lone surrogates."""
    if not isinstance(message, HumanMessage | AIMessage | ChatMessage):
        return ""
    if isinstance(message.content, list):
        said = [block for block in message.content if not _is_placeholder(block)]
        message = message.model_copy(update={"content": said})
    return storable(message.text, MAX_SEARCHABLE_CHARS)


def to_messages(value: object, *, role: type[HumanMessage | AIMessage]) -> list[BaseMessage]:
    """Convert an input or output of a chain to messages; a string becomes a message of type `role`.

    Raises:
        TypeError: It is not a string, a message or a sequence of messages.
    """
    if isinstance(value, str):
        return [role(value)]
    if isinstance(value, BaseMessage):
        return [message_chunk_to_message(value)]
    if isinstance(value, PromptValue | Sequence):
        return [message_chunk_to_message(message) for message in convert_to_messages(cast("Sequence[str]", value))]
    raise TypeError(f"expected a string, a message or messages, not {type(value).__name__}: {value!r:.80}")


def _fields(message: BaseMessage) -> Json:
    """The fields of a message as JSON; values that JSON cannot represent, such as a tool's artifact, become texts."""
    try:
        given = message.model_dump(exclude_defaults=True)
        try:
            fields: Json = to_jsonable_python(given, bytes_mode="base64", inf_nan_mode="null", fallback=str)
        except ValueError:  # also for what has more than 255 levels
            fields = json.loads(json.dumps(given, default=str))
    except (RecursionError, TypeError, ValueError, PydanticSerializationError) as cause:
        raise InvalidInputError(f"a message of type {message.type!r} cannot be stored as JSON: {cause}") from cause
    return fields


def _author(message: BaseMessage, scope: CallScope) -> str | None:
    if message.name is not None and message.name.strip():
        return _as_author(message.name)
    if isinstance(message, HumanMessage):
        return scope.memory.scope.user
    if isinstance(message, AIMessage):
        return scope.agent or "assistant"
    return _as_author(message.role) if isinstance(message, ChatMessage) else None


def _as_author(name: str) -> str | None:
    return storable(name.replace("\0", ""), _MAX_AUTHOR_CHARS).strip() or None


def _copy(record: MemoryRecord) -> Mapping[str, object] | None:
    copies = record.data.get(FRAMEWORK_MESSAGE)
    given = cast("Mapping[str, object]", copies).get(_DATA_KEY) if isinstance(copies, Mapping) else None
    return cast("Mapping[str, object]", given) if isinstance(given, Mapping) else None


def _stored(record: MemoryRecord) -> BaseMessage | None:
    """The message a record contains, or `None`: one bad record must not make a conversation unreadable."""
    given = _copy(record)
    if given is None:
        return None
    try:
        message = messages_from_dict([cast("dict[str, object]", given)])[0]
    except (AttributeError, KeyError, TypeError, ValueError):  # raised by LangChain's classes on bad data
        return None
    if isinstance(message.content, str):
        return message
    return message.model_copy(update={"content": [_readable(block) for block in message.content]})


def _readable(block: str | dict[str, Any]) -> str | dict[str, Any]:
    """The block, or a text in its place if it was cut: models refuse a part of an image or of a file."""
    if isinstance(block, str) or block.get("type") == "text" or not any(map(is_shortened, _texts(block))):
        return block
    kind = next((one for key in ("mime_type", "type") if isinstance(one := block.get(key), str)), "content")
    return {"type": "text", "text": f"[{kind:.50}: too large to be remembered]"}


def _is_placeholder(block: str | dict[str, Any]) -> bool:
    """True if a block stands for content that was too large, which nobody has said."""
    text = block if isinstance(block, str) else block.get("text")
    return isinstance(text, str) and _PLACEHOLDER.fullmatch(text) is not None


def _texts(value: object) -> Iterator[str]:
    """The texts in a value that is JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        inside = cast("Mapping[str, object] | list[object]", value)
        for part in inside.values() if isinstance(inside, Mapping) else inside:
            yield from _texts(part)


def _foreign(record: MemoryRecord) -> BaseMessage:
    if record.role == "system":
        return SystemMessage(record.text)
    if record.role is None:
        by_user = record.author is None or record.author in {record.user, "user", "human"}
    else:
        by_user = record.role == "user"
    return (HumanMessage if by_user else AIMessage)(record.text)


def _with_text(message: BaseMessage, text: str) -> str | list[str | dict[str, object]]:
    """The content with its text blocks replaced by a single one; images and other blocks stay."""
    if isinstance(message.content, str):
        return text
    others = [
        block
        for block in message.content
        if isinstance(block, dict) and (block.get("type") != "text" or _is_placeholder(block))
    ]
    return [{"type": "text", "text": without_files(text)}, *others]
