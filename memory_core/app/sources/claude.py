"""Claude.ai's data export: `conversations.json`, or the folder or the .zip that contains it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from memory_core.app.sources.exports import conversations_in, is_export, spoken_parts
from memory_core.models import Draft, Role
from memory_core.transfer.foreign_values import fields_of, items_of, text_of, time_of
from memory_core.transfer.formats import Found, Refused
from memory_core.values.times import shifted

_ROLES: Final[Mapping[str, Role]] = {"human": "user", "assistant": "assistant"}
_NOT_SAID: Final = frozenset({"thinking", "redacted_thinking", "tool_use", "tool_result"})
"""Types of parts that are no words to the other."""
_STEP: Final = timedelta(microseconds=1)


def is_claude(path: Path) -> bool:
    """True if a path may be this export."""
    return is_export(path, "chat_messages")


async def claude(source: str) -> AsyncIterator[Found | Refused]:
    """Claude.ai's export: its .zip, its folder or conversations.json; what the user and the model said."""
    for place, value in conversations_in(source, "Claude.ai's"):
        given = fields_of(value)
        session = text_of(given.get("uuid"))
        if session is None or not isinstance(given.get("chat_messages"), list):
            yield Refused(place, "it has no messages or no uuid")
            continue
        for item in _said(place, session, given):
            yield item


def _said(place: str, session: str, conversation: dict[str, Any]) -> Iterator[Found | Refused]:
    latest = time_of(conversation.get("created_at"))
    title = text_of(conversation.get("name"))
    for number, value in enumerate(items_of(conversation.get("chat_messages")), 1):
        message = fields_of(value)
        where, role = f"{place}, message {number}", _ROLES.get(text_of(message.get("sender")) or "")
        said = _words(message)
        if not said:
            if not message:
                yield Refused(where, "it is not an object")
            continue  # a file, or calls of tools
        if role is None:
            yield Refused(where, f"it does not say who speaks: its sender is {message.get('sender')!r:.80}")
            continue
        latest = time_of(message.get("created_at")) or (None if latest is None else shifted(latest, _STEP))
        name = text_of(message.get("uuid")) or f"{number}"
        yield Found(
            where,
            Draft(
                said,
                kind="message",
                role=role,
                session=session,
                data={} if title is None else {"title": title},
                occurred_at=latest,
                source_key=f"claude:{session}:{name}",
            ),
        )


def _words(message: dict[str, Any]) -> str:
    """The words of a message: its parts of text, without thoughts and tools, or else its text."""
    parts = [part for part in items_of(message.get("content")) if text_of(fields_of(part).get("type")) not in _NOT_SAID]
    text = message.get("text")
    return spoken_parts(parts, "") or (text.strip() if isinstance(text, str) else "")
