"""The command line: `python -m memory_mcp --file memory.db --user ann`, or `memory-mcp` with the same options."""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Sequence
from typing import Final

from memory_mcp.event import object_in, prompt_of, session_of
from memory_mcp.local_server import LocalServer

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
    if given.action == "hook" and given.collection == EVERY:
        given.collection = None
    try:
        event, server = (_event(), _server(given)) if given.action == "hook" else (None, None)
        shown = None if event is None or server is None else _before_prompt(server, event)
        if shown is None:
            from memory_mcp.program import run  # noqa: PLC0415  (what a server answers needs none of it)

            return run(given, event, server)
        sys.stdout.write(shown)
    except KeyboardInterrupt:  # while an event is read, or a module is imported
        from memory_mcp.stopping import INTERRUPTED  # noqa: PLC0415

        return INTERRUPTED
    return 0


def _before_prompt(server: LocalServer, text: str) -> str | None:
    """The block that a server shows before a prompt; `None` if the event has no prompt, or no server answers."""
    event = object_in(text)
    prompt = None if event is None else prompt_of(event)
    if event is None or prompt is None:
        return None
    return server.ask("prompt", session_of(event), {"prompt": prompt})


def _event() -> str:
    """The text that the client writes to standard input. Events and answers are in UTF-8, whatever the locale is."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdin.read()


def _server(given: argparse.Namespace) -> LocalServer | None:
    """The server that may listen beside the file, if it can do what the options ask for."""
    if given.share or given.user is None:
        return None
    return LocalServer(given.file, given.app, given.user, given.collection)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("memory-mcp", description="Serve a memory to MCP clients, over stdio or HTTP.")
    parser.add_argument(
        "action",
        nargs="?",
        choices=("serve", "hook"),
        default="serve",
        help="hook: process the event of a client on standard input and end (default: serve)",
    )
    parser.add_argument("--file", required=True, metavar="FILE", help="the memory file; created if it is missing")
    parser.add_argument("--user", help="the owner of the memories; with --tokens, each token names its user")
    parser.add_argument("--app", default="default", help="the app the memories belong to (default: %(default)s)")
    parser.add_argument(
        "--collection",
        help="collection of calls that name none and of a hook (default: '*', which writes without one and reads all)",
    )
    parser.add_argument(
        "--tools",
        nargs="+",
        metavar="NAME",
        help="the tools to offer; all: every one; read: those that change nothing (default: what agents use)",
    )
    parser.add_argument("--skynet", action="store_true", help="the arguments and defaults of the Skynet document")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="how long a call may take before it is an error (default: 30)",
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
    parser.add_argument(
        "--cache-mb", type=int, default=512, metavar="MB", help="memory for the users searched lately (default: 512)"
    )
    return parser


def _space(text: str) -> tuple[str, str, bool]:
    """Label, owner, and whether it may be written to."""
    label, _, owner = text.partition("=")
    if not label or not owner.removesuffix(":write"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not LABEL=USER or LABEL=USER:write; write for example team=team:red"
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


if __name__ == "__main__":
    sys.exit(main())
