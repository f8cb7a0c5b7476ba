"""What a client writes to its hook: one JSON object. Needs nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

Event = Mapping[str, object]


def object_in(text: str) -> Event | None:
    """The JSON object of a text: an event, or a line of a transcript. `None` if it is something else."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Event", value) if isinstance(value, dict) else None


def prompt_of(event: Event) -> str | None:
    """What the person says now, if the event is from before a prompt."""
    prompt = event.get("prompt")
    return prompt if isinstance(prompt, str) else None


def session_of(event: Event) -> str | None:
    """The conversation that the event is from."""
    session = event.get("session_id")
    return session if isinstance(session, str) and session.strip() else None
