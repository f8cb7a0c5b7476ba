"""The command line: the script `memory-core`, and `python -m memory_core`."""

from __future__ import annotations

import io
import os
import sys

INTERRUPTED = 130


def run() -> None:
    """Run the command of this process."""
    _prepare_streams()
    try:
        from memory_core.app.main import main  # noqa: PLC0415  (takes a while, in which Ctrl-C is no traceback either)

        code = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        os._exit(code)  # a thread may wait for standard input; what was open is closed
    sys.exit(code)


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
