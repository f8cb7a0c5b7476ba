"""A hook program for clients that support hooks: it recalls before a prompt and remembers after a turn.

Agents rarely search their memory on their own initiative; a client with hooks does so for every prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from memory_core import PUSHED, BoundMemory, InvalidInputError, MemoryRecord, Message, SharedMemory, Where
from memory_core.adapting import Asked, block_for, follow_branch, with_profile
from memory_mcp.transcript import read_transcript

_BEFORE: Final = 3
"""Messages before the prompt that may say what it is about; the prompt itself may be among them."""
_AT_ONCE: Final = 200
"""Messages that are stored together. A client stops a hook that takes too long; the next call continues after what was
stored."""

Event = Mapping[str, object]


async def run_hook(memory: BoundMemory | SharedMemory, event: str) -> str:
    """Process one event and return the text to show the model.

    | the event has | action |
    |---|---|
    | `transcript_path` but no `prompt`, like Claude Code's `Stop` | remember the messages of the transcript |
    | `messages`, each with `role` and `content` | remember these messages |
    | `prompt`, like Claude Code's `UserPromptSubmit` | return the profile and the memories that are relevant |

    A message is remembered once, no matter how often its transcript is passed in. If the user goes back to an earlier
    prompt, what followed it is taken back. The messages of the conversation that
    the event is from are not returned, because the model can see them.

    Args:
        memory: A handle that is bound to a user, or a `SharedMemory`, whose spaces are recalled too.
        event: A JSON object, as the client writes it to standard input; `session_id` names the conversation.

    Raises:
        InvalidInputError: The event has none of these fields, or the transcript cannot be read.
    """
    given = _object(event)
    prompt, transcript, messages = (given.get(name) for name in ("prompt", "transcript_path", "messages"))
    session = _session(given)
    if isinstance(prompt, str):
        return await with_profile(memory, await _recalled(memory, prompt, session))
    if messages is not None:
        await memory.remember(cast("list[Mapping[str, object]]", messages), session=session)
    elif isinstance(transcript, str):
        read = await asyncio.to_thread(read_transcript, Path(transcript))
        if session is not None:
            own = memory.own if isinstance(memory, SharedMemory) else memory
            await follow_branch(own, session, read.visible, read.left)
        await _remember(memory, read.visible, session)
    else:
        raise InvalidInputError("the event must have 'prompt', 'messages' or the 'transcript_path' of a conversation")
    return ""


async def _recalled(memory: BoundMemory | SharedMemory, prompt: str, session: str | None) -> str:
    own = memory.own if isinstance(memory, SharedMemory) else memory
    owner = own.scope.app, own.scope.user

    def is_shown(record: MemoryRecord) -> bool:
        return session is not None and record.session == session and (record.app, record.user) == owner

    before: list[str] = []
    if session is not None:
        page = await own.list(where=Where(session=session, roles=["user"]), limit=_BEFORE)
        before = [record.text for record in reversed(page.records)]
    return (await block_for(memory, Asked(prompt, before, is_shown), PUSHED)).text


async def _remember(memory: BoundMemory | SharedMemory, said: Sequence[Message], session: str | None) -> None:
    """Remember a conversation, in parts if they can be told apart without the messages around them."""
    step = _AT_ONCE if all(message.id is not None for message in said) else max(len(said), 1)
    for start in range(0, len(said), step):
        await memory.remember(said[start : start + step], session=session)


def _session(event: Event) -> str | None:
    session = event.get("session_id")
    return session if isinstance(session, str) and session.strip() else None


def _object(text: str) -> Event:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InvalidInputError("an event is one JSON object") from cause
    if not isinstance(value, dict):
        raise InvalidInputError("an event is one JSON object")
    return cast("Event", value)
