"""A hook program for clients that support hooks: it recalls before a prompt and remembers after a turn.

Agents rarely search their memory on their own initiative; a client with hooks does so for every prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from memory_core import BoundMemory, InvalidInputError, Message
from memory_core.adapting import follow_branch, forget_shown, once_a_session, read_messages
from memory_mcp.event import Event, begins_session, has_compacted, object_in, prompt_of, session_of, transcript_of
from memory_mcp.local_server import Json, LocalServer
from memory_mcp.transcript import read_transcript

_AT_ONCE: Final = 200
"""Messages that are stored together. A client stops a hook that takes too long; the next call continues after what was
stored."""
STORE_SECONDS: Final = 10.0
"""The time that a server that answers may take to store them: it computes their vectors."""


@dataclass(frozen=True, slots=True)
class HookTurn:
    """The messages of a conversation, as an event tells them."""

    session: str | None
    said: Sequence[Message]
    left: Sequence[Message] | None
    """The messages that the conversation no longer shows; `None` if the client does not say."""

    def parts(self) -> Iterator[Sequence[Message]]:
        """The messages in parts, if they can be told apart without the messages around them."""
        step = _AT_ONCE if all(message.id is not None for message in self.said) else max(len(self.said), 1)
        for start in range(0, len(self.said), step):
            yield self.said[start : start + step]


async def run_hook(memory: BoundMemory, event: str) -> str:
    """Process one event and return the text to show the model.

    | the event has | action |
    |---|---|
    | the `hook_event_name` `SessionStart` | return the profile |
    | `transcript_path` but no `prompt`, like Claude Code's `Stop` | remember the messages of the transcript |
    | `messages`, each with `role` and `content` | remember these messages |
    | `prompt`, like Claude Code's `UserPromptSubmit` | return the profile and the memories that are relevant |

    In a session each memory is returned once, until it changes or the client compacts the conversation.

    A message is remembered once, no matter how often its transcript is passed in. If the user goes back to an earlier
    prompt, what followed it is taken back. The messages of the conversation that
    the event is from are not returned, because the model can see them.

    Args:
        memory: A handle that is bound to a user; its spaces are recalled too.
        event: A JSON object, as the client writes it to standard input; `session_id` names the conversation.

    Raises:
        InvalidInputError: The event has none of these fields, or the transcript cannot be read.
    """
    given = object_in(event)
    session = None if given is None else session_of(given)
    if given is not None and session is not None and has_compacted(given):
        forget_shown(memory.memory, session)
    if given is not None and begins_session(given):
        return await once_a_session(memory, None, session)
    if given is not None and (prompt := prompt_of(given)) is not None:
        return await once_a_session(memory, prompt, session)
    await remember_turn(memory, await asyncio.to_thread(turn_of, given))
    return ""


def turn_of(event: Event | None) -> HookTurn:
    """The messages that an event tells, itself or by its transcript.

    Raises:
        InvalidInputError: It tells nothing, or the transcript cannot be read.
    """
    if event is None:
        raise InvalidInputError("an event is one JSON object")
    transcript, messages = transcript_of(event), event.get("messages")
    if messages is not None:
        return HookTurn(session_of(event), read_messages(messages), None)
    if transcript is not None:
        read = read_transcript(Path(transcript))
        return HookTurn(session_of(event), read.visible, read.left)
    raise InvalidInputError(
        "the event must have a text as 'prompt', an array of 'messages', or the path of a transcript as "
        "'transcript_path'"
    )


async def remember_turn(memory: BoundMemory, turn: HookTurn) -> None:
    """Remember what was said, each message once, and take back what the conversation no longer shows."""
    if turn.session is not None and turn.left is not None:
        await follow_branch(memory, turn.session, turn.said, turn.left)
    for part in turn.parts():
        await memory.remember(part, session=turn.session)


def is_remembered_by(server: LocalServer, turn: HookTurn) -> bool:
    """Let a server remember a turn, and say whether it has.

    Else it may have done so, or a part of it: then `remember_turn` does the rest, since each message is stored once.
    """
    branch = {"shown": _names(turn.said), "left": _names(turn.left)} if turn.left is not None else {}
    if server.ask("turn", turn.session, branch) is None:
        return False
    parts = ({"messages": [_as_json(message) for message in part]} for part in turn.parts())
    return all(server.ask("turn", turn.session, part, STORE_SECONDS) is not None for part in parts)


def _names(messages: Sequence[Message]) -> list[Json]:
    """The identities of messages, without their texts."""
    return [{"text": "", "id": message.id, "role": message.role} for message in messages]


def _as_json(message: Message) -> Json:
    moment = message.occurred_at
    return {**asdict(message), "occurred_at": None if moment is None else moment.isoformat()}
