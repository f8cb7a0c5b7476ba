"""ChatGPT's data export: `conversations.json`, or its parts `conversations-000.json`, ..., or what contains them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from memory_core.app.sources.exports import conversations_in, is_export, spoken_parts
from memory_core.models import Draft, Role
from memory_core.transfer.foreign_values import fields_of, text_of, time_of
from memory_core.transfer.formats import Found, Refused
from memory_core.values.times import shifted

_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant"}
_NOT_SAID: Final = frozenset({"system", "tool", "developer"})
"""Roles of messages that neither the person nor the model says."""
_HIDDEN: Final = "is_visually_hidden_from_conversation"
_SHOWN: Final = frozenset({"text", "multimodal_text", "audio_transcription"})
"""Types of content that the page shows as words."""
_NOT_SHOWN: Final = frozenset(
    {
        "code",
        "computer_output",
        "execution_output",
        "model_editable_context",
        "reasoning_recap",
        "system_error",
        "tether_browsing_display",
        "tether_quote",
        "thoughts",
        "user_editable_context",
    }
)
"""Thoughts, calls of tools, and the person's settings."""
_STEP: Final = timedelta(microseconds=1)


def is_chatgpt(path: Path) -> bool:
    """True if a path may be this export."""
    return is_export(path, "mapping")


async def chatgpt(source: str) -> AsyncIterator[Found | Refused]:
    """ChatGPT's export: its .zip, its folder or conversations.json; what the user and the model said."""
    for place, value in conversations_in(source, "ChatGPT's"):
        given = fields_of(value)
        mapping, session = (
            fields_of(given.get("mapping")),
            text_of(given.get("conversation_id")) or text_of(given.get("id")),
        )
        if not mapping or session is None:
            yield Refused(place, "it has no messages or no id")
            continue
        path, is_whole = _path(mapping, given.get("current_node"))
        if not is_whole:
            yield Refused(place, "the message before its first one is missing, so what was said before is not known")
        for item in _said(place, path, session, given):
            yield item


def _said(
    place: str, path: list[tuple[str, dict[str, Any]]], session: str, conversation: dict[str, Any]
) -> Iterator[Found | Refused]:
    latest = time_of(conversation.get("create_time"))
    for node, message in path:
        given = text_of(fields_of(message.get("author")).get("role"))
        role = _ROLES.get(given or "")
        said = _words(message)
        if not said or given in _NOT_SAID or fields_of(message.get("metadata")).get(_HIDDEN) is True:
            continue
        where = f"{place}, message {node}"
        if (kind := _kind(message)) is not None and kind not in _SHOWN:
            yield Refused(where, f"whether it is shown as words is not known: its content is of the type {kind!r:.80}")
            continue
        if role is None:
            yield Refused(where, f"it does not say who speaks: its role is {given!r:.80}")
            continue
        latest = time_of(message.get("create_time")) or (None if latest is None else shifted(latest, _STEP))
        yield Found(where, _draft(said, role, node, session, conversation, latest))


def _path(mapping: dict[str, Any], last: object) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """The messages from the first to the last one shown, by the keys of their nodes, and whether none is missing.

    Branches that the user edited away are left out. Without a last one, the last of the mapping counts that no other
    follows.
    """
    if not isinstance(last, str) or last not in mapping:
        parents = {fields_of(node).get("parent") for node in mapping.values() if _has_name(node)}
        last = next((key for key in reversed(mapping) if key not in parents), None)
    path: dict[str, dict[str, Any]] = {}
    while isinstance(last, str) and last in mapping and last not in path:
        node = fields_of(mapping[last])
        path[last] = fields_of(node.get("message"))
        last = node.get("parent")
    return list(reversed(path.items())), last is None and bool(path)


def _has_name(node: object) -> bool:
    return isinstance(fields_of(node).get("parent"), str)


def _words(message: dict[str, Any]) -> str:
    return "" if _kind(message) in _NOT_SHOWN else spoken_parts(message.get("content"), "parts")


def _kind(message: dict[str, Any]) -> str | None:
    return text_of(fields_of(message.get("content")).get("content_type"))


def _draft(said: str, role: Role, node: str, session: str, conversation: dict[str, Any], at: datetime | None) -> Draft:
    title = text_of(conversation.get("title"))
    return Draft(
        said,
        kind="message",
        role=role,
        session=session,
        data={} if title is None else {"title": title},
        occurred_at=at,
        source_key=f"chatgpt:{session}:{node}",
    )
