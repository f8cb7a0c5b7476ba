"""Run a program until its work ends or a signal asks it to end; then the work still closes what it opened.

`MCPServer.run` of mcp 2.3.0 ends with a traceback after Ctrl-C, and at once after SIGTERM, which leaves the write-ahead
log beside the file; this file goes when it ends in an orderly way
(https://github.com/modelcontextprotocol/python-sdk/issues/2663). A hook needs it as long as `asyncio.run` knows Ctrl-C
alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from memory_core.adapting import end_in_time

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells number it. After the other signals it is 0: a supervisor asked the program to end,
and it did; systemd and Docker report any other code as a failure."""
GRACE_SECONDS: Final = 2
"""The time for which a program that is ending waits for clients that keep a stream open or no longer read."""
_INTERRUPTS: Final = ("SIGINT", "SIGBREAK")
_ENDS: Final = ("SIGTERM", "SIGHUP")
"""Not every system has every signal."""


def run_until_signal(work: Coroutine[object, object, None]) -> int:
    """Run `work` on a new event loop; returns the exit code of the program.

    The first signal cancels `work` once. Further signals, which wrappers and terminals often send, do not interrupt it
    while it closes its files. Signals that the process was started to ignore, as by `nohup`, stay ignored.

    Raises:
        Exception: The error that `work` raises.
    """
    received: list[int] = []
    asyncio.run(_cancelled_by_signals(work, received))
    code = _code(received)
    if code == INTERRUPTED:
        sys.stderr.write("memory-mcp: interrupted; the memory is closed\n")
        sys.stderr.flush()
    if received:
        _leave_waiting_threads(code)
    return code


async def _cancelled_by_signals(work: Coroutine[object, object, None], received: list[int]) -> None:
    task = asyncio.create_task(work)
    with _handled(task, received):
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # if this program is cancelled itself
    if not (received and task.cancelled()):
        await task


@contextmanager
def _handled(task: asyncio.Task[None], received: list[int]) -> Generator[None]:
    """Cancel the task at the first signal. Only the main thread can handle signals."""
    loop = asyncio.get_running_loop()

    def stop(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            end_in_time()
            loop.call_soon_threadsafe(task.cancel)

    in_main_thread = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in (*_INTERRUPTS, *_ENDS) if hasattr(signal, name) and in_main_thread]
    before = {number: signal.getsignal(number) for number in numbers}
    handled = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)


def _leave_waiting_threads(code: int) -> None:
    """End the process if a thread is left that nothing can interrupt, such as one that writes to a client which no
    longer reads. Python would wait for it, although the files are closed."""
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(GRACE_SECONDS)
    if any(thread.is_alive() for thread in others):
        os._exit(code)


def _code(received: list[int]) -> int:
    interrupts = {getattr(signal, name, None) for name in _INTERRUPTS}
    return INTERRUPTED if received and received[0] in interrupts else 0
