"""The command line: `python -m memory_mcp --db memory.db --user ann`, or `memory-mcp` with the same options."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from typing import NoReturn

from memory_mcp import thin
from memory_mcp.options import parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client closes standard input or until a signal, or process one event as a hook.

    Returns:
        The exit code: 0 if the work is done or a signal asked the program to end, 130 after Ctrl-C.

    Raises:
        SystemExit: It could not be done; the code is 2, or 1 for a hook.
    """
    given = parser().parse_args(arguments)
    try:
        event = _event() if given.action == "hook" else ""
        block = thin.recalled(given, event) if given.action == "hook" else None
        if block is not None:
            sys.stdout.write(block)
            return 0
        return _whole(given, event)
    except KeyboardInterrupt:  # while an event is read, or a module is imported
        from memory_mcp.stopping import INTERRUPTED  # noqa: PLC0415

        return INTERRUPTED


def _whole(given: argparse.Namespace, event: str) -> int:
    """Do it with the memory itself; what that takes is imported here, because a hook that asks a server needs none."""
    from memory_core import MemoryCoreError  # noqa: PLC0415
    from memory_mcp.command import answer, serve  # noqa: PLC0415
    from memory_mcp.stopping import run_until_signal  # noqa: PLC0415

    try:
        return run_until_signal(answer(given, event) if given.action == "hook" else serve(given))
    except MemoryCoreError as failure:
        _end(str(failure), status=1 if given.action == "hook" else 2)  # for a hook, 2 would stop the client's turn


def _event() -> str:
    """What the client writes to standard input. Events and answers are in UTF-8, whatever the locale is."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdin.read()


def _end(reason: str, status: int) -> NoReturn:
    sys.stderr.write(f"memory-mcp: {reason}\n")
    sys.exit(status)


if __name__ == "__main__":
    sys.exit(main())
