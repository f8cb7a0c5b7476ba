"""What the command line does: serve, or process one event as a hook."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from memory_core import BoundMemory, InvalidInputError, Memory, SharedMemory
from memory_core.adapting import limits
from memory_mcp.hook import run_hook

if TYPE_CHECKING:
    from memory_mcp.owners import Served

EVERY: Final = "*"
"""Stands for every collection; the tools' own constant would import the server's SDK."""


async def answer(given: argparse.Namespace, event: str) -> None:
    """Process an event, and write the text for the model to standard output.

    Raises:
        InvalidInputError: It is not an event, or the options name no user.
        StorageError: The memory cannot be opened.
    """
    if given.user is None:
        raise InvalidInputError("a hook serves one user; name the user with --user")
    async with Memory(given.db) as memory:
        collection = None if given.collection == EVERY else given.collection
        sys.stdout.write(await run_hook(_reached(memory, given, given.user, collection), event))


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
    if given.http is not None and tokens is None and not _is_loopback(given.http[0]):
        raise InvalidInputError(f"--http {given.http[0]} is open to other machines; name its users with --tokens")
    async with Memory(given.db) as memory:
        if tokens is None or not given.share:
            served: Served = _reached(memory, given, given.user)
        else:
            served = partial(_reached, memory, given)
        server = memory_server(
            served,
            collection=given.collection,
            tools=given.tools,
            skynet=given.skynet,
            timeout=limits.SERVED_SECONDS if given.timeout is None else given.timeout,
            tokens=tokens,
        )
        if given.http is None:
            await serve_stdio(server)
        else:
            await serve_http(server, *given.http, hosts=given.allow_host)


def _reached(
    memory: Memory, given: argparse.Namespace, user: str | None, collection: str | None = None
) -> BoundMemory | SharedMemory:
    """What a user reaches: the own memory or a collection of it, and the spaces that the options share."""
    handle = memory.bind(app=given.app, user=given.user).bind(user=user, collection=collection)
    if not given.share:
        return handle
    spaces = {label: memory.bind(app=given.app, user=owner) for label, owner, _ in given.share}
    return SharedMemory(handle, spaces, writable=[label for label, _, is_writable in given.share if is_writable])


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
