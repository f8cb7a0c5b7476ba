"""ChatGPT's data export: `conversations.json`, or the folder or the .zip that contains it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from memory_core.importing import Found, Refused, file_at, json_of, time_of, word
from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Role

NAME: Final = "conversations.json"
_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant"}


async def chatgpt(source: str) -> AsyncIterator[Found | Refused]:
    """ChatGPT's export: its .zip, its folder or conversations.json; what the user and the model said."""
    for number, given in enumerate(_conversations(source), 1):
        place = f"conversation {number}"
        mapping = given.get("mapping") if isinstance(given, dict) else None
        session = word(given.get("conversation_id") or given.get("id")) if isinstance(given, dict) else None
        if not isinstance(mapping, dict) or session is None:
            yield Refused(place, "it has no messages or no id")
            continue
        for found in _messages(cast("dict[str, Any]", mapping), given.get("current_node")):
            draft = _draft(found, session, given)
            if draft is not None:
                yield Found(f"{place}, message {found.get('id')}", draft)


def _conversations(source: str) -> list[Any]:
    path = Path(source).expanduser()
    path = path / NAME if path.is_dir() else file_at(source)
    if path.suffix == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                found = json.loads(archive.read(NAME))
        except (zipfile.BadZipFile, KeyError, ValueError, RecursionError, OSError) as error:
            raise InvalidInputError(f"{source!r} is not ChatGPT's export, or is damaged: {error}") from error
    else:
        found = json_of(file_at(str(path)))
    if not isinstance(found, list):
        raise InvalidInputError(f"{source!r} is not ChatGPT's export: it is not a list of conversations")
    return cast("list[Any]", found)


def _messages(mapping: dict[str, Any], last: Any) -> Iterator[dict[str, Any]]:
    """The messages from the first to the last one shown; branches that the user edited away are left out."""
    path: list[dict[str, Any]] = []
    node = mapping.get(last) if isinstance(last, str) else None
    while isinstance(node, dict) and len(path) <= len(mapping):
        if isinstance(node.get("message"), dict):
            path.append(node["message"])
        node = mapping.get(cast("Any", node.get("parent")))
    yield from reversed(path)


def _draft(message: dict[str, Any], session: str, conversation: dict[str, Any]) -> Draft | None:
    author, content = message.get("author"), message.get("content")
    role = _ROLES.get(author.get("role", "")) if isinstance(author, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    said = "\n".join(part for part in parts if isinstance(part, str)).strip() if isinstance(parts, list) else ""
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
