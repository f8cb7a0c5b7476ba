"""The command line: `python -m memory_mcp --db memory.db --user ann`, or `memory-mcp` with the same options."""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NoReturn

from memory_core import BoundMemory, InvalidInputError, Memory, MemoryCoreError, SharedMemory
from memory_core.adapting import limits
from memory_mcp.hook import run_hook
from memory_mcp.stopping import INTERRUPTED, run_until_signal

if TYPE_CHECKING:
    from memory_mcp.owners import Served

EVERY: Final = "*"
"""Stands for every collection; the tools' own constant would import the server's SDK."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client closes standard input or until a signal, or process one event as a hook.

    Returns:
        The exit code: 0 if the work is done or a signal asked the program to end, 130 after Ctrl-C.

    Raises:
        SystemExit: It could not be done; the code is 2, or 1 for a hook.
    """
    given = _parser().parse_args(arguments)
    try:
        return run_until_signal(answer(given, _event()) if given.action == "hook" else serve(given))
    except MemoryCoreError as failure:
        _end(str(failure), status=1 if given.action == "hook" else 2)  # for a hook, 2 would stop the client's turn
    except KeyboardInterrupt:  # while an event is read, or a module is imported
        return INTERRUPTED


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
            timeout=given.timeout,
            tokens=tokens,
        )
        if given.http is None:
            await serve_stdio(server)
        else:
            await serve_http(server, *given.http, hosts=given.allow_host)


def _event() -> str:
    """What the client writes to standard input. Events and answers are in UTF-8, whatever the locale is."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdin.read()


def _reached(
    memory: Memory, given: argparse.Namespace, user: str | None, collection: str | None = None
) -> BoundMemory | SharedMemory:
    """What a user reaches: the own memory or a collection of it, and the spaces that the options share."""
    handle = memory.bind(app=given.app, user=given.user).bind(user=user, collection=collection)
    if not given.share:
        return handle
    spaces = {label: memory.bind(app=given.app, user=owner) for label, owner, _ in given.share}
    return SharedMemory(handle, spaces, writable=[label for label, _, is_writable in given.share if is_writable])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("memory-mcp", description="Serve a memory to MCP clients, over stdio or HTTP.")
    parser.add_argument("action", nargs="?", choices=("serve", "hook"), default="serve", help="hook: see docs/mcp.md")
    parser.add_argument("--db", required=True, metavar="FILE", help="the memory file; created if it is missing")
    parser.add_argument("--user", help="the owner of the memories; with --tokens, each token names its user")
    parser.add_argument("--app", default="default", help="the app the memories belong to (default: %(default)s)")
    parser.add_argument(
        "--collection",
        help="collection of calls that name none and of a hook (default: '*', which writes without one and reads all)",
    )
    parser.add_argument(
        "--tools",
        choices=("all", "core"),
        default="all",
        help="core: five tools, in fewer tokens (default: all)",
    )
    parser.add_argument(
        "--skynet", action="store_true", help="the arguments and defaults of the Skynet document; see docs/mcp.md"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=limits.SERVED_SECONDS,
        metavar="SECONDS",
        help="how long a call may take before it is an error (default: %(default)g)",
    )
    parser.add_argument(
        "--share",
        action="append",
        default=[],
        type=_space,
        metavar="LABEL=USER[:write]",
        help="share the memories of another user of the app under a label, for reading or for writing too; repeatable",
    )
    parser.add_argument("--http", type=_address, metavar="[HOST:]PORT", help="serve http://HOST:PORT/mcp, not stdio")
    parser.add_argument("--tokens", metavar="FILE", help='a JSON object of users and their bearer tokens: {"ann": "…"}')
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name of the server besides loopback"
    )
    return parser


def _space(text: str) -> tuple[str, str, bool]:
    """Label, owner, and whether it may be written to."""
    label, _, owner = text.partition("=")
    if not label or not owner.removesuffix(":write"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not LABEL=USER or LABEL=USER:write; write for example team=team-red"
        )
    return label, owner.removesuffix(":write"), owner.endswith(":write")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, such as 30")
    return seconds


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST:]PORT; write for example 8000 or 0.0.0.0:8000")
    return host.strip("[]") or "127.0.0.1", int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _end(reason: str, status: int) -> NoReturn:
    sys.stderr.write(f"memory-mcp: {reason}\n")
    sys.exit(status)


if __name__ == "__main__":
    sys.exit(main())
