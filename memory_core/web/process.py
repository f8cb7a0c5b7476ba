"""The set-up of a process that serves, before it listens: a log that cannot fail, and an end that always comes."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import gc
import logging
import os
import sys
from contextlib import suppress
from typing import Any, Final

from memory_core.concurrency.cores import leave_a_core
from memory_core.errors import reason_for_log
from memory_core.values.printable import one_line

END_SECONDS: Final = 10
"""The time that a server may take to end after it was asked to, whatever runs."""
MAX_LINE_CHARS: Final = 1_000
QUIET_SECONDS: Final = 60.0
"""The time after which what happens again is logged again: without descriptors, asyncio says so for every
connection."""

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
"""Parameters of `mallopt` in malloc.h."""
_LARGE_BYTES: Final = 1 << 20
_ARENAS: Final = 2

logger = logging.getLogger(__name__)


def log_plainly(program: str, *, requests: bool = False) -> None:
    """Log warnings to standard error, each as one line, unless the process has a log already.

    Call it before the MCP SDK is set up, whose own log reads files for each traceback: it fails when no descriptors are
    left, in the middle of what has to be handled then. A traceback may also quote a memory.

    Args:
        requests: Log each request, too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(f"{program}: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if requests:
        logging.getLogger("memory_core.access").setLevel(logging.INFO)


def prepare_to_serve() -> None:
    """Prepare the memory and the cores of this process before it serves.

    What it has in memory now is left out of every later search for garbage: a search through all that is imported stops
    everybody for 80 ms, and a request of 300 kB can cause one. With the GNU C library, large blocks go back to the
    system when they are freed. By default each one that is freed raises the size from which they do, up to 32 MB, and
    answers of some megabytes in many threads leave holes that nothing fills: docs/measured.md, "Many users at one
    server".
    """
    leave_a_core()
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        with suppress(AttributeError):  # of other C libraries
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
            mallopt(_M_ARENA_MAX, _ARENAS)


class _OneLine(logging.Formatter):
    """A message as one line, without a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage().strip()
        error = record.exc_info[1] if record.exc_info else None
        reason = "" if error is None else f": {reason_for_log(error)}"
        return one_line(f"{self.formatMessage(record)}{reason}", MAX_LINE_CHARS)


def survive_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log what nobody has caught on a loop. The loop would end if logging it failed too."""
    said: dict[str, float] = {}

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # asyncio's type
        message, error, now = str(context.get("message", "")), context.get("exception"), loop.time()
        if now < said.get(message, -QUIET_SECONDS) + QUIET_SECONDS:
            return
        said.clear()
        said[message] = now
        with suppress(Exception):  # whatever it is: an error here ends the loop, and with it the server
            logger.error("%s%s", message, "" if error is None else f": {reason_for_log(error)}")

    loop.set_exception_handler(handle)


def end_in_time() -> None:
    """Let the process end within `END_SECONDS`, with code 1 if it does not do so by itself: what is acknowledged is
    durable, and supervisors wait no longer. It needs no turn of Python's, so that nothing can keep it from ending."""
    nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  (for the rest of the process)
    faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=nowhere)
