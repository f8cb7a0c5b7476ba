"""The work of the command with the memory file open: to serve it, or to process an event."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from memory_core import BoundMemory, InvalidInputError, Memory, MemoryCoreError
from memory_core.adapting import MACHINE_ZONE, is_loopback, limits, log_plainly, one_line, prepare_to_serve
from memory_mcp.event import begins_session, object_in, prompt_of
from memory_mcp.hook import HookTurn, is_remembered_by, remember_turn, run_hook, turn_of
from memory_mcp.local_server import LocalServer
from memory_mcp.stopping import run_until_signal

if TYPE_CHECKING:
    from memory_mcp.owners import Served

MAX_REASON_CHARS: Final = 2_000
"""Characters of an error on the terminal, whose end says the way out."""


def run(given: argparse.Namespace, event: str | None, server: LocalServer | None) -> int:
    """Serve, or process the event of a hook; a server that listens beside the file may remember a turn.

    Returns:
        The exit code of the program.

    Raises:
        SystemExit: It could not be done.
    """
    try:
        if event is None:
            return run_until_signal(serve(given))
        return _process(given, event, server)
    except MemoryCoreError as failure:
        _end(str(failure), status=2 if event is None else 1)  # for a hook, 2 would stop the client's turn


def _process(given: argparse.Namespace, event: str, server: LocalServer | None) -> int:
    if given.user is None:
        raise InvalidInputError("a hook serves one user; name the user with --user")
    known = object_in(event)
    if known is not None and (begins_session(known) or prompt_of(known) is not None):
        return run_until_signal(_answer(given, event))
    turn = turn_of(known)
    if server is not None and is_remembered_by(server, turn):
        return 0
    return run_until_signal(_remember(given, turn))


async def _answer(given: argparse.Namespace, event: str) -> None:
    """Write the text for the model to standard output."""
    async with Memory(given.file, zone=MACHINE_ZONE) as memory:
        sys.stdout.write(await run_hook(_of_hook(memory, given), event))


async def _remember(given: argparse.Namespace, turn: HookTurn) -> None:
    async with Memory(given.file, zone=MACHINE_ZONE) as memory:
        await remember_turn(_of_hook(memory, given), turn)


def _of_hook(memory: Memory, given: argparse.Namespace) -> BoundMemory:
    return _reached(memory, given, given.user, given.collection)


async def serve(given: argparse.Namespace) -> None:
    """Open the memory, serve it, close it.

    Raises:
        InvalidInputError: The arguments contradict each other.
        StorageError: The memory cannot be opened.
    """
    # A hook needs none of these, and they take longer to import than a hook takes altogether.
    from memory_mcp.owners import StaticTokens  # noqa: PLC0415
    from memory_mcp.server import memory_server  # noqa: PLC0415
    from memory_mcp.serving import serve_http, serve_stdio  # noqa: PLC0415

    tokens = None if given.tokens is None else StaticTokens.from_file(given.tokens)
    if tokens is not None and given.http is None:
        raise InvalidInputError("--tokens works only with --http; over stdio, name the user with --user")
    if tokens is None and given.user is None:
        raise InvalidInputError("say whose memories they are: --user NAME, or --http with --tokens FILE")
    log_plainly("memory-mcp")
    if given.http is not None and tokens is None and not is_loopback(given.http[0]):
        raise InvalidInputError(f"--http {given.http[0]} is open to other machines; name its users with --tokens")
    zone = MACHINE_ZONE if given.http is None else UTC  # those who reach it over HTTP may be anywhere
    async with Memory(given.file, cache_bytes=given.cache_mb * 1024 * 1024, zone=zone) as memory:
        if tokens is None or not given.share:
            served: Served = _reached(memory, given, given.user)
        else:
            served = partial(_reached, memory, given)
        server = memory_server(
            served,
            collection=given.collection,
            tools=given.tools,
            skynet=given.skynet,
            timeout=limits.EXPLICIT_SECONDS if given.timeout is None else given.timeout,
            tokens=tokens,
        )
        if given.http is None:
            await serve_stdio(server)
        else:
            prepare_to_serve()
            await serve_http(server, *given.http, hosts=given.allow_host)


def _reached(memory: Memory, given: argparse.Namespace, user: str | None, collection: str | None = None) -> BoundMemory:
    """The memories that a user reaches: the own memory or a collection of it, and the spaces that the options share."""
    handle = memory.bind(app=given.app, user=given.user).bind(user=user, collection=collection)
    spaces = {label: memory.bind(app=given.app, user=owner) for label, owner, _ in given.share}
    return handle.sharing(spaces, writable=[label for label, _, is_writable in given.share if is_writable])


def _end(reason: str, status: int) -> NoReturn:
    sys.stderr.write(f"memory-mcp: {one_line(reason, MAX_REASON_CHARS)}\n")
    sys.exit(status)
