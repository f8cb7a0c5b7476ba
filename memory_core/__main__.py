"""The command line: the script `memory-core`, and `python -m memory_core`."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
FAILED = 2
_SIGNALS = ("SIGTERM", "SIGHUP")
"""End a command as Ctrl-C does. Not every system has them."""


def run() -> None:
    """Run the command of this process."""
    _prepare_streams()
    received = _handle_signals()
    try:
        from memory_core.app.main import main  # noqa: PLC0415  (takes a while, in which Ctrl-C is no traceback either)

        code = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseExceptionGroup as group:  # the MCP SDK's, if Ctrl-C comes in a task group of anyio
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        code = INTERRUPTED
    except ImportError as error:  # a package that the program itself needs, and prints with
        sys.stderr.write(f"memory-core: {error}\n")
        code = FAILED
    if code == INTERRUPTED:
        with contextlib.suppress(OSError):  # the terminal may be gone
            sys.stderr.write("memory-core: interrupted; nothing is half-written, and the same command continues\n")
            sys.stderr.flush()
        code = 128 + received[0] if received else code
        os._exit(code)  # a thread may wait for standard input; what was open is closed
    sys.exit(code)


def _handle_signals() -> list[int]:
    """Close the memory before a signal ends the process; returns the list of the signals that will have arrived."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            return
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
            signal.signal(number, interrupt)
    return received


def _prepare_streams() -> None:
    """Make a closed stream an empty one, and print what the encoding of a terminal or pipe lacks as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  (until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    run()
