"""The requests that the hook of a coding client sends instead of opening the file itself: over a local socket, and
nowhere else.

The other side is `memory_mcp/local_server.py`. Both are of one version: another one is refused, as is a hook that would
open another file or recall with another model, and the hook then opens the file itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Literal

from memory_core.app.serve.api import Owner, Writable
from memory_core.app.serve.served import TokenFirst, served_by
from memory_core.conversation.before_prompt import once_a_session
from memory_core.conversation.branches import follow_branch
from memory_core.conversation.messages.message_to_draft import Message
from memory_core.handle import BoundMemory
from memory_core.web.local import is_local

try:
    from fastapi import APIRouter, Depends, HTTPException, Request
    from pydantic import ConfigDict
    from pydantic.dataclasses import dataclass
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class About:
    """The memory that a hook is for."""

    protocol: Literal[1]
    """The version that the two sides understand; one that changes anything has another number."""
    file: tuple[int, int]
    """Device and inode of the file that the hook would open."""
    collection: str | None
    session: str | None
    until: float
    """The time at which the hook stops waiting and opens the file, in seconds since 1970; what it asked is then out
    of date."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Prompt:
    """The prompt of a person."""

    about: About
    prompt: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class Turn:
    """The messages that were said."""

    about: About
    messages: Sequence[Message] = ()
    """To remember; as many as a request can hold, because those without ids are told apart by those around them."""
    shown: Sequence[Message] = ()
    """All that the conversation shows, as ids and roles; empty if the client does not say."""
    left: Sequence[Message] = ()
    """The messages that it no longer shows, because the person went back to an earlier prompt."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Answered:
    """The text that the hook prints."""

    text: str = ""


async def local_only(request: Request) -> None:
    """Refuse what did not come over a local socket.

    Raises:
        HTTPException: It did not.
    """
    if not is_local(request.scope):
        raise HTTPException(403, "this is for hooks on the same machine, over the local socket")


hooks = APIRouter(prefix="/hook", dependencies=[Depends(local_only)], include_in_schema=False, route_class=TokenFirst)


@hooks.post("/prompt")
async def prompt(given: Prompt, owner: Owner, request: Request) -> Answered:
    """Return the text that is shown before a prompt."""
    memory, counts_reads = _memory(request, owner, given.about), served_by(request).writable
    return Answered(await once_a_session(memory, given.prompt, given.about.session, counts_reads=counts_reads))


@hooks.post("/turn")
async def turn(given: Turn, owner: Writable, request: Request) -> Answered:
    """Remember what was said, each message once."""
    memory, session = _memory(request, owner, given.about), given.about.session
    if session is not None and (given.shown or given.left):
        await follow_branch(memory, session, given.shown, given.left)
    await memory.remember(given.messages, session=session)
    return Answered()


def _memory(request: Request, owner: BoundMemory, about: About) -> BoundMemory:
    """The memory that the hook would open.

    Raises:
        HTTPException: This server has another one, or the hook has opened it by now.
    """
    if time.time() > about.until:
        raise HTTPException(409, "the hook no longer waits")
    if served_by(request).hooked != about.file:
        raise HTTPException(409, "this server has another file than the hook, or another model")
    return owner.bind(collection=about.collection)
