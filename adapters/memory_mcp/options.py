"""The options of the command line, read with the standard library alone, so that a hook can start at once."""

from __future__ import annotations

import argparse
import math
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    made = argparse.ArgumentParser("memory-mcp", description="Serve a memory to MCP clients, over stdio or HTTP.")
    made.add_argument("action", nargs="?", choices=("serve", "hook"), default="serve", help="hook: see docs/mcp.md")
    made.add_argument("--db", required=True, metavar="FILE", help="the memory file; created if it is missing")
    made.add_argument("--user", help="the owner of the memories; with --tokens, each token names its user")
    made.add_argument("--app", default="default", help="the app the memories belong to (default: %(default)s)")
    made.add_argument(
        "--collection",
        help="collection of calls that name none and of a hook (default: '*', which writes without one and reads all)",
    )
    made.add_argument(
        "--tools",
        choices=("all", "core"),
        default="all",
        help="core: five tools, in fewer tokens (default: all)",
    )
    made.add_argument(
        "--skynet", action="store_true", help="the arguments and defaults of the Skynet document; see docs/mcp.md"
    )
    made.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="how long a call may take before it is an error (default: 30)",
    )
    made.add_argument(
        "--share",
        action="append",
        default=[],
        type=_space,
        metavar="LABEL=USER[:write]",
        help="share the memories of another user of the app under a label, for reading or for writing too; repeatable",
    )
    made.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="a hook recalls through this socket of `memory-core serve`, if a server listens there",
    )
    made.add_argument("--http", type=_address, metavar="[HOST:]PORT", help="serve http://HOST:PORT/mcp, not stdio")
    made.add_argument("--tokens", metavar="FILE", help='a JSON object of users and their bearer tokens: {"ann": "…"}')
    made.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name of the server besides loopback"
    )
    return made


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
