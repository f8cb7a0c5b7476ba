"""A program for clients that run one at certain events: it recalls before a prompt and remembers after a turn.

An agent that has to think of searching its memory seldom does; a client with hooks does it for every prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, cast

from memory_core import BoundMemory, InvalidInputError, Message, Role

_MAX_MESSAGES: Final = 200
"""So many messages at the end of a transcript are looked at; those of earlier turns were remembered then."""
_ROLES: Final[Mapping[object, Role]] = {"user": "user", "assistant": "assistant"}

Event = Mapping[str, object]


async def run_hook(memory: BoundMemory, event: str) -> str:
    """Do what an event asks for, and return what to show the model.

    | the event has | what happens |
    |---|---|
    | `transcript_path` and no `prompt`, as at Claude Code's `Stop` | the transcript's last messages are remembered |
    | `messages`, each with `role` and `content` | they are remembered |
    | `prompt`, as at Claude Code's `UserPromptSubmit` | what is remembered about it is returned |

    A message is remembered once, however often its transcript is handed over.

    Args:
        memory: Fixes the user.
        event: A JSON object, as the client writes it to standard input; `session_id` names the conversation.

    Raises:
        InvalidInputError: The event is none of these, or the transcript cannot be read.
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
        raise InvalidInputError("an event has a 'prompt', 'messages', or the 'transcript_path' of a conversation")
    return ""


def _messages(transcript: Path) -> Iterator[Message]:
    """What the user and the model said to each other in a transcript of Claude Code, oldest first."""
    try:
        lines = transcript.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as cause:
        raise InvalidInputError(f"the transcript {str(transcript)!r} cannot be read: {cause}") from cause
    for line in lines:
        entry: Event = _object(line) if line.strip() else {}
        message = entry.get("message")
        role = _ROLES.get(entry.get("type"))
        if role is None or not isinstance(message, Mapping) or entry.get("isMeta") or entry.get("isSidechain"):
            continue
        text = _text(cast("Event", message).get("content"))
        if text:
            key = entry.get("uuid")
            yield Message(text, role=role, id=key if isinstance(key, str) else None, occurred_at=_moment(entry))


def _text(content: object) -> str:
    """What was said; tools, their results and thoughts are left out."""
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
        raise InvalidInputError("an event is a JSON object on standard input, and a transcript one a line") from cause
    if not isinstance(value, dict):
        raise InvalidInputError("an event is a JSON object on standard input, and a transcript one a line")
    return cast("Event", value)
