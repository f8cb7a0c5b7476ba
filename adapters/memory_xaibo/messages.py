"""Xaibo's messages as records, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from memory_core import Draft, MemoryRecord, Role
from memory_core.adapting import FRAMEWORK_MESSAGE, MESSAGE_KIND, storable
from memory_xaibo.protocols import LLMMessage, LLMRole

_XAIBO: Final = "xaibo"
"""Key of the message in a record's `FRAMEWORK_MESSAGE`, if its role and text are not all of it."""
_ROLES: Final[Mapping[LLMRole, Role]] = {
    LLMRole.USER: "user",
    LLMRole.ASSISTANT: "assistant",
    LLMRole.FUNCTION: "tool",
    LLMRole.SYSTEM: "system",
}


def role_of(message: LLMMessage) -> Role:
    """The role of the speaker."""
    return _ROLES[message.role]


def text_of(message: LLMMessage) -> str:
    """The texts of a message, one per line."""
    return "\n".join(part.text for part in message.content if part.text)


def spoken(role: Role, text: str, session: str) -> Draft:
    """The draft of what somebody said."""
    return Draft(text, role=role, kind=MESSAGE_KIND, session=session)


def to_draft(message: LLMMessage, session: str) -> Draft:
    """The draft of a message, which comes back unchanged. Instructions and tool calls have no text that is searched."""
    role = role_of(message)
    text = storable(text_of(message)) if role in ("user", "assistant") else ""
    plain = spoken(role, text, session)
    if text.strip() and message == _said(role, text):
        return plain
    fields = message.model_dump(mode="json", exclude_defaults=True)
    return Draft(text, role=role, kind=MESSAGE_KIND, session=session, data={FRAMEWORK_MESSAGE: {_XAIBO: fields}})


def to_message(record: MemoryRecord) -> LLMMessage:
    """The message of a record; if any framework changed its text, with that text."""
    copy = record.data.get(FRAMEWORK_MESSAGE)
    given = copy.get(_XAIBO) if isinstance(copy, Mapping) else None
    if isinstance(given, Mapping):
        message = LLMMessage.model_validate(given)
        if record.text in ("", text_of(message)):
            return message
    return _said(record.role, record.text)


def with_block(messages: Sequence[LLMMessage], block: str) -> list[LLMMessage]:
    """The messages with a block behind the instructions at their beginning, in the same message: Xaibo's models read
    the text of one."""
    first = messages[0] if messages else None
    if not block:
        return list(messages)
    if first is None or first.role != LLMRole.SYSTEM:
        return [LLMMessage.system(block), *messages]
    return [LLMMessage.system(f"{text_of(first)}\n\n{block}", first.name), *messages[1:]]


def _said(role: Role | None, text: str) -> LLMMessage:
    """A message that is nothing but a text. What no model of Xaibo said becomes an answer."""
    if role == "user":
        return LLMMessage.user(text)
    return LLMMessage.system(text) if role == "system" else LLMMessage.assistant(text)
