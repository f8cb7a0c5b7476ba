"""Read the transcript of a coding client: one JSON object per line, or one object with `messages`.

Clients die while they write, and the hook runs again at every turn. So a line or a message that is not as it should be
costs nothing but itself. What clients write themselves is left out (`clients.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from memory_core import InvalidInputError, Message, Role
from memory_core.adapting import check_key, storable, without_blocks, zoned_text
from memory_mcp.clients import JsonObject, spoken_in
from memory_mcp.event import object_in

logger = logging.getLogger(__name__)

_MOST_BEGINNINGS: Final = 100
"""Places of a broken line at which an entry may begin that was appended to it."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of the user and the model, oldest first."""

    visible: Sequence[Message]
    left: Sequence[Message] = ()
    """The entries that the last prompt does not descend from, because the user went back to an earlier one."""


def read_transcript(transcript: Path) -> Transcript:
    """Read a transcript. Lines that are not JSON objects are skipped with a warning, and a warning says so if nobody
    speaks in any entry, as in the transcript of a client that is not in the table.

    Raises:
        InvalidInputError: The file cannot be read, or no line of it is a JSON object.
    """
    try:
        content = transcript.expanduser().read_bytes()
    except OSError as cause:
        raise InvalidInputError(f"the transcript {str(transcript)!r} cannot be read: {cause.strerror}") from cause
    entries = _entries_of_whole(content)
    if entries is None:
        entries = _entries_of_lines(content, str(transcript))
    spoken = [found for entry in entries if (found := spoken_in(entry)) is not None]
    if entries and not spoken:
        logger.warning(
            "0 of %d entries of the transcript %r are messages; "
            'the page "A memory for MCP clients" names the clients that are known',
            len(entries),
            str(transcript),
        )
    return _branches(entries)


def _entries_of_whole(content: bytes) -> list[JsonObject] | None:
    """The messages of a transcript that is one JSON object, as Gemini CLI writes it; `None` for any other."""
    if not content.lstrip().startswith(b"{") or b'"messages"' not in content:
        return None
    whole = object_in(content.decode(errors="replace"))
    messages = None if whole is None else whole.get("messages")
    if not isinstance(messages, list):
        return None
    return [cast("JsonObject", each) for each in cast("list[object]", messages) if isinstance(each, Mapping)]


def _entries_of_lines(content: bytes, name: str) -> list[JsonObject]:
    """The entries of a transcript with an entry a line.

    Raises:
        InvalidInputError: No line is a JSON object.
    """
    # Texts contain other separators of lines, such as U+2028, so only this one counts.
    lines = [line for line in content.split(b"\n") if line.strip()]
    entries = [_entry(line.decode(errors="replace")) for line in lines]
    whole = sum(entry is not None and is_whole for entry, is_whole in entries)
    if lines and not any(entry is not None for entry, _ in entries):
        raise InvalidInputError(f"the transcript {name!r} has no line that is a JSON object")
    if whole < len(lines):
        logger.warning("lines of the transcript that are not JSON objects were skipped: %d", len(lines) - whole)
    return [entry for entry, _ in entries if entry is not None]


def _branches(entries: Sequence[JsonObject]) -> Transcript:
    """Tell the visible branch from those that the user has left.

    Each entry names the one before it. Entries that are no ancestors of the last one have not all been left: the calls
    of tools that run at the same time branch off, too. So a branch counts as left only where the visible one goes on
    with a prompt.
    """
    said = [message for entry in entries if (message := _message(entry)) is not None]
    parents = {name: _parent(entry) for entry in entries if (name := _linked_name(entry)) is not None}
    prompts = {message.id for message in said if message.role == "user"}
    beginnings = {name for name in _roots(entries) if name in prompts}
    roles: dict[str | None, Role] = {message.id: message.role for message in said}
    line = _line(next(reversed(parents), None), parents)
    after: dict[str, Role | None] = {}
    """By entry of the visible branch, who speaks next on it."""
    following: Role | None = None
    for name in line:
        after[name] = following
        if name in roles:
            following = roles[name]

    starts_over = bool(line) and line[-1] in beginnings  # not with a summary of what the client has compacted
    forks = _forks([message.id for message in said if message.id is not None], parents, after)

    def is_left(message: Message) -> bool:
        if message.id is None or message.id in after:
            return False
        fork = forks[message.id]
        return after[fork] == "user" if fork in after else starts_over and fork in beginnings

    left = {message.id for message in said if is_left(message)} - {None}
    return Transcript(
        [message for message in said if message.id not in left],
        [message for message in said if message.id in left],
    )


def _line(name: str | None, parents: Mapping[str, str | None], *until: Container[str]) -> list[str]:
    """An entry and its ancestors, the nearest first, up to one of those in one of `until`."""
    line: dict[str, None] = {}
    while name is not None and name in parents and name not in line:
        line[name] = None
        if any(name in each for each in until):
            break
        name = parents[name]
    return list(line)


def _forks(names: Sequence[str], parents: Mapping[str, str | None], visible: Container[str]) -> dict[str, str]:
    """The nearest ancestor of each entry that is visible, or the first one. Nothing is walked twice."""
    forks: dict[str, str] = {}
    for name in names:
        line = _line(name, parents, visible, forks) or [name]
        forks |= dict.fromkeys(line, forks.get(line[-1], line[-1]))
    return forks


def _roots(entries: Sequence[JsonObject]) -> list[str]:
    """The names of entries that say that nothing is before them."""
    rooted = (entry for entry in entries if entry.get("parentUuid", "unknown") is None)
    return [name for entry in rooted if (name := _linked_name(entry)) is not None]


def _linked_name(entry: JsonObject) -> str | None:
    return None if entry.get("isSidechain") else _name(entry, "uuid")


def _parent(entry: JsonObject) -> str | None:
    """The entry before this one; for the first one after a compaction, the last one before it."""
    return _name(entry, "parentUuid") or _name(entry, "logicalParentUuid")


def _name(entry: JsonObject, key: str) -> str | None:
    name = entry.get(key)
    return name if isinstance(name, str) else None


def _entry(line: str) -> tuple[JsonObject | None, bool]:
    """The entry of a line, if it has one, and whether it is the whole line.

    What is written after a client has died follows on the half line that it left.
    """
    if (entry := object_in(line)) is not None:
        return entry, True
    start = 0
    for _ in range(_MOST_BEGINNINGS):
        start = line.find('{"', start + 1)
        if start < 0:
            break
        if (entry := object_in(line[start:])) is not None:
            return entry, False
    return None, False


def _message(entry: JsonObject) -> Message | None:
    """The message of the user or the model in an entry."""
    spoken = spoken_in(entry)
    text = "" if spoken is None else without_blocks(storable(spoken.text))
    if spoken is None or not text:
        return None
    return Message(text, role=spoken.role, id=_id(entry), occurred_at=zoned_text(entry.get("timestamp")))


def _id(entry: JsonObject) -> str | None:
    try:
        return check_key("the id of an entry", entry.get("uuid") or entry.get("id"))
    except InvalidInputError:
        return None
