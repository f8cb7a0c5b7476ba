"""Read the transcript of a coding client: one JSON object per line, as Claude Code writes it.

Clients die while they write, and the hook runs again at every turn. So a line or a message that is not as it should be
costs nothing but itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from memory_core import InvalidInputError, Message, Role
from memory_core.adapting import MAX_TEXT_CHARS, check_key

logger = logging.getLogger(__name__)

_NOT_SAID: Final = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")
"""Marks of entries that Claude Code writes itself, such as the summary that replaces a long conversation."""
_OUTPUTS: Final = ("<local-command-", "<bash-stdout>", "<bash-stderr>")
"""What the text of an entry begins with that is the output of a command."""
_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant"}
_MOST_BEGINNINGS: Final = 100
"""Places of a broken line at which an entry may begin that was appended to it."""

Entry = Mapping[str, object]


def read_transcript(transcript: Path) -> list[Message]:
    """The messages of the user and the model, oldest first. Lines that are not JSON objects are skipped with a warning.

    Raises:
        InvalidInputError: The file cannot be read, or no line of it is a JSON object.
    """
    try:
        # Texts contain other separators of lines, such as U+2028, so only this one counts.
        lines = [line for line in transcript.expanduser().read_bytes().split(b"\n") if line.strip()]
    except OSError as cause:
        raise InvalidInputError(f"the transcript {str(transcript)!r} cannot be read: {cause.strerror}") from cause
    entries = [_entry(line.decode(errors="replace")) for line in lines]
    whole = sum(entry is not None and is_whole for entry, is_whole in entries)
    if lines and not any(entry is not None for entry, _ in entries):
        raise InvalidInputError(f"the transcript {str(transcript)!r} has no line that is a JSON object")
    if whole < len(lines):
        logger.warning("lines of the transcript that are not JSON objects were skipped: %d", len(lines) - whole)
    return list(_messages(entry for entry, _ in entries if entry is not None))


def _entry(line: str) -> tuple[Entry | None, bool]:
    """The entry of a line, if it has one, and whether it is the whole line.

    What is written after a client has died follows on the half line that it left.
    """
    if (entry := _object(line)) is not None:
        return entry, True
    start = 0
    for _ in range(_MOST_BEGINNINGS):
        start = line.find('{"', start + 1)
        if start < 0:
            break
        if (entry := _object(line[start:])) is not None:
            return entry, False
    return None, False


def _object(text: str) -> Entry | None:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Entry", value) if isinstance(value, dict) else None


def _messages(entries: Iterator[Entry]) -> Iterator[Message]:
    for entry in entries:
        message = entry.get("message")
        role = _ROLES.get(str(entry.get("type")))
        if role is None or not isinstance(message, Mapping) or any(entry.get(mark) for mark in _NOT_SAID):
            continue
        text = _storable(_text(cast("Entry", message).get("content")))
        if text and not text.startswith(_OUTPUTS):
            yield Message(text, role=role, id=_id(entry), occurred_at=_moment(entry))


def _text(content: object) -> str:
    """The spoken text, without tool calls, tool results and thoughts."""
    if isinstance(content, str):
        return content.strip()
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    parts = [cast("Entry", block) for block in blocks if isinstance(block, Mapping)]
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text").strip()


def _storable(text: str) -> str:
    """The text without halves of characters, and its beginning if it is longer than a record can be."""
    return text[:MAX_TEXT_CHARS].encode(errors="replace").decode()


def _id(entry: Entry) -> str | None:
    try:
        return check_key("uuid", entry.get("uuid"))
    except InvalidInputError:
        return None


def _moment(entry: Entry) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(entry.get("timestamp")))
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
