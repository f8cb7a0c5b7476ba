"""A hook program for clients that support hooks: it recalls before a prompt and remembers after a turn.

Agents rarely search their memory on their own initiative; a client with hooks does so for every prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, cast

from memory_core import BoundMemory, InvalidInputError, Message, Role, SharedMemory

_MAX_MESSAGES: Final = 200
"""Messages read from the end of a transcript. Earlier messages were remembered when their own turn ended."""
_NOT_SAID: Final = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")
"""Marks of entries that Claude Code writes itself, such as the summary that replaces a long conversation."""
_OUTPUTS: Final = ("<local-command-", "<bash-stdout>", "<bash-stderr>")
"""What the text of an entry begins with that is the output of a command."""
_ROLES: Final[Mapping[object, Role]] = {"user": "user", "assistant": "assistant"}

Event = Mapping[str, object]


async def run_hook(memory: BoundMemory | SharedMemory, event: str) -> str:
    """Process one event and return the text to show the model.

    | the event has | action |
    |---|---|
    | `transcript_path` but no `prompt`, like Claude Code's `Stop` | remember the last messages of the transcript |
    | `messages`, each with `role` and `content` | remember these messages |
    | `prompt`, like Claude Code's `UserPromptSubmit` | return the memories that are relevant to the prompt |

    A message is remembered once, no matter how often its transcript is passed in.

    Args:
        memory: A handle that is bound to a user, or a `SharedMemory`, whose spaces are recalled too.
        event: A JSON object, as the client writes it to standard input; `session_id` names the conversation.

    Raises:
        InvalidInputError: The event has none of these fields, or the transcript cannot be read.
    """
    given = _object(event)
    prompt, transcript, messages = (given.get(name) for name in ("prompt", "transcript_path", "messages"))
    if isinstance(prompt, str):
        return (await memory.recall(prompt)).text
    if messages is not None:
        await memory.remember(cast("list[Mapping[str, object]]", messages), session=_session(given))
    elif isinstance(transcript, str):
        said = await asyncio.to_thread(lambda: list(_messages(Path(transcript).expanduser())))
        await memory.remember(said[-_MAX_MESSAGES:], session=_session(given))
    else:
        raise InvalidInputError("the event must have 'prompt', 'messages' or the 'transcript_path' of a conversation")
    return ""


def _messages(transcript: Path) -> Iterator[Message]:
    """The messages of the user and the model in a Claude Code transcript, oldest first."""
    try:
        lines = transcript.read_text(encoding="utf-8").split("\n")  # texts contain other separators, such as U+2028
    except (OSError, UnicodeDecodeError) as cause:
        raise InvalidInputError(f"the transcript {str(transcript)!r} cannot be read: {cause}") from cause
    for line in lines:
        entry: Event = _object(line) if line.strip() else {}
        message = entry.get("message")
        role = _ROLES.get(entry.get("type"))
        if role is None or not isinstance(message, Mapping) or any(entry.get(mark) for mark in _NOT_SAID):
            continue
        text = _text(cast("Event", message).get("content"))
        if text and not text.startswith(_OUTPUTS):
            key = entry.get("uuid")
            yield Message(text, role=role, id=key if isinstance(key, str) else None, occurred_at=_moment(entry))


def _text(content: object) -> str:
    """The spoken text, without tool calls, tool results and thoughts."""
    if isinstance(content, str):
        return content.strip()
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    parts = [cast("Event", block) for block in blocks if isinstance(block, Mapping)]
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text").strip()


def _moment(entry: Event) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _session(event: Event) -> str | None:
    session = event.get("session_id")
    return session if isinstance(session, str) and session.strip() else None


def _object(text: str) -> Event:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InvalidInputError("an event is one JSON object, and a transcript is one JSON object per line") from cause
    if not isinstance(value, dict):
        raise InvalidInputError("an event is one JSON object, and a transcript is one JSON object per line")
    return cast("Event", value)
