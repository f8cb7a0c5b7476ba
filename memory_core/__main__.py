"""The command line: the script `memory-core`, and `python -m memory_core`."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def run() -> None:
    """Run the command of this process."""
    try:
        from memory_core.app.main import main  # noqa: PLC0415  (takes a while, in which Ctrl-C is no traceback either)

        code = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        os._exit(code)  # a thread may wait for standard input; what was open is closed
    sys.exit(code)


if __name__ == "__main__":
    run()
