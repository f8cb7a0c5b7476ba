"""ChatGPT's data export: `conversations.json`, or the folder or the .zip that contains it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Role
from memory_core.transfer.foreign_files import file_at, json_in_zip, json_of
from memory_core.transfer.foreign_values import fields_of, items_of, time_of, word
from memory_core.transfer.formats import Found, Refused

NAME: Final = "conversations.json"
_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant"}


async def chatgpt(source: str) -> AsyncIterator[Found | Refused]:
    """ChatGPT's export: its .zip, its folder or conversations.json; what the user and the model said."""
    for number, value in enumerate(_conversations(source), 1):
        place, given = f"conversation {number}", fields_of(value)
        mapping, session = fields_of(given.get("mapping")), word(given.get("conversation_id") or given.get("id"))
        if not mapping or session is None:
            yield Refused(place, "it has no messages or no id")
            continue
        for message in _messages(mapping, given.get("current_node")):
            draft = _draft(message, session, given)
            if draft is not None:
                yield Found(f"{place}, message {message.get('id')}", draft)


def _conversations(source: str) -> list[Any]:
    path = Path(source).expanduser()
    path = path / NAME if path.is_dir() else file_at(source)
    found = json_in_zip(path, NAME) if path.suffix.lower() == ".zip" else json_of(file_at(str(path)))
    conversations = items_of(found)
    if found != conversations:
        raise InvalidInputError(f"{source!r} is not ChatGPT's export: it is not a list of conversations")
    return conversations


def _messages(mapping: dict[str, Any], last: object) -> Iterator[dict[str, Any]]:
    """The messages from the first to the last one shown; branches that the user edited away are left out."""
    path: list[dict[str, Any]] = []
    while isinstance(last, str) and last in mapping and len(path) <= len(mapping):
        node = fields_of(mapping[last])
        path.append(fields_of(node.get("message")))
        last = node.get("parent")
    yield from reversed(path)


def _draft(message: dict[str, Any], session: str, conversation: dict[str, Any]) -> Draft | None:
    role = _ROLES.get(word(fields_of(message.get("author")).get("role")) or "")
    parts = items_of(fields_of(message.get("content")).get("parts"))
    said = "\n".join(part for part in parts if isinstance(part, str)).strip()
    if role is None or not said:
        return None
    title = word(conversation.get("title"))
    return Draft(
        said,
        kind="message",
        role=role,
        session=session,
        data={} if title is None else {"title": title},
        occurred_at=time_of(message.get("create_time")) or time_of(conversation.get("create_time")),
        source_key=f"chatgpt:{session}:{message.get('id')}",
    )
