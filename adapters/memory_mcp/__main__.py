"""The command line: `python -m memory_mcp --db memory.db --user ann`, or `memory-mcp` with the same options."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final, NoReturn

from memory_core import InvalidInputError, Memory, MemoryCoreError, SharedMemory
from memory_mcp.hook import run_hook
from memory_mcp.owners import Reach, Served, StaticTokens
from memory_mcp.server import http_app, memory_server

try:
    import uvicorn
    from starlette.applications import Starlette
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

_KEEP_ALIVE_SECONDS: Final = 120
"""How long an idle connection stays open. Agents often pause for longer than uvicorn's default of 5 seconds between two
calls, and a call that is sent while the server closes the connection fails."""
_BACKLOG: Final = 2_048
"""Connections that may wait to be accepted; uvicorn's own default."""
_GRACE_SECONDS: Final = 2
"""How long a server that is shutting down waits for clients that keep a stream open."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the client closes standard input or, over HTTP, until a signal; or process one event as a hook."""
    given = _parser().parse_args(arguments)
    try:
        asyncio.run(answer(given) if given.action == "hook" else serve(given))
    except MemoryCoreError as failure:
        _end(str(failure), status=1 if given.action == "hook" else 2)  # for a hook, 2 would stop the client's turn
    except KeyboardInterrupt:
        pass  # Ctrl-C is the normal way to stop a server in a terminal


async def answer(given: argparse.Namespace) -> None:
    """Process the event on standard input, and write the text for the model to standard output.

    Raises:
        InvalidInputError: The input is not an event.
        StorageError: The memory cannot be opened.
    """
    if given.user is None:
        raise InvalidInputError("a hook serves one user; name the user with --user")
    async with Memory(given.db) as memory:
        sys.stdout.write(await run_hook(_reached(memory, given, given.user), await asyncio.to_thread(sys.stdin.read)))


async def serve(given: argparse.Namespace) -> None:
    """Open the memory, serve it, close it.

    Raises:
        InvalidInputError: The arguments contradict each other.
        StorageError: The memory cannot be opened.
    """
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
        server = memory_server(served, collection=given.collection, tokens=tokens)
        if given.http is None:
            await server.run_stdio_async()
        else:
            await _serve_http(http_app(server, hosts=given.allow_host), *given.http)


def _reached(memory: Memory, given: argparse.Namespace, user: str | None) -> Reach:
    """What a user reaches: the own memory, and the spaces that the options share."""
    handle = memory.bind(app=given.app, user=given.user).bind(user=user)
    if not given.share:
        return handle
    spaces = {label: memory.bind(app=given.app, user=owner) for label, owner, _ in given.share}
    return SharedMemory(handle, spaces, writable=[label for label, _, is_writable in given.share if is_writable])


async def _serve_http(app: Starlette, host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; without it, each answer waits 40 ms for an ACK.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(_BACKLOG)
        except OSError as cause:
            raise InvalidInputError(f"cannot listen on {host} port {port}: {cause.strerror}; choose another") from cause
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        sys.stderr.write(f"memory-mcp: http://{shown}:{listening.getsockname()[1]}/mcp\n")
        sys.stderr.flush()
        config = uvicorn.Config(
            app,
            log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        await uvicorn.Server(config).serve(sockets=[listening])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("memory-mcp", description="Serve a memory to MCP clients, over stdio or HTTP.")
    parser.add_argument("action", nargs="?", choices=("serve", "hook"), default="serve", help="hook: see docs/mcp.md")
    parser.add_argument("--db", required=True, metavar="FILE", help="the memory file; created if it is missing")
    parser.add_argument("--user", help="the owner of the memories; with --tokens, each token names its user")
    parser.add_argument("--app", default="default", help="the app the memories belong to (default: %(default)s)")
    parser.add_argument(
        "--collection",
        help="collection of calls that name none (default: skynet_memories); '*' writes without one and reads all",
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
    main()
