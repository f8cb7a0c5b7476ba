"""The event that a client writes to its hook, one JSON object. Needs nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from memory_mcp.clients import said_by_person

Event = Mapping[str, object]
_AFTER: Final = frozenset({"AfterAgent"})
"""Events after a turn that repeat its prompt."""
_CONVERSATIONS: Final = ("session_id", "conversation_id", "trajectory_id")
"""The fields in which clients name the conversation: Claude Code and most others, Cursor, Windsurf."""


def object_in(text: str) -> Event | None:
    """The JSON object of a text: an event, or a line of a transcript. `None` if it is something else."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Event", value) if isinstance(value, dict) else None


def prompt_of(event: Event) -> str | None:
    """The words that the person says now, if the event is from before a prompt."""
    prompt = None if event.get("hook_event_name") in _AFTER else event.get("prompt")
    return said_by_person(prompt) if isinstance(prompt, str) else None


def begins_session(event: Event) -> bool:
    """True if a conversation begins or goes on, also after the client has compacted it."""
    return event.get("hook_event_name") == "SessionStart"


def has_compacted(event: Event) -> bool:
    """True if the client no longer shows what it was given in the conversation before."""
    return event.get("source") in ("compact", "clear") or event.get("hook_event_name") == "PreCompact"


def session_of(event: Event) -> str | None:
    """The conversation that the event is from."""
    names = (event.get(field) for field in _CONVERSATIONS)
    return next((name for name in names if isinstance(name, str) and name.strip()), None)


def transcript_of(event: Event) -> str | None:
    """The path of the transcript, which Windsurf names inside of an object."""
    inner = event.get("tool_info")
    holders = (event, cast("Event", inner)) if isinstance(inner, Mapping) else (event,)
    paths = (holder.get("transcript_path") for holder in holders)
    return next((path for path in paths if isinstance(path, str)), None)
