"""Standard input that a server can stop reading.

A thread that reads standard input waits until the client writes or closes it, and nothing can interrupt that. So one
thread reads for the life of the process, and the server reads from that thread.

mcp 2.3.0 waits for its thread; this file goes when a server of the SDK ends at a signal
(https://github.com/modelcontextprotocol/python-sdk/issues/3551).
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from queue import Full, Queue
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from memory_mcp.half_characters import without_halves

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST_LINES: Final = 16
"""Lines that are read in advance; then the client waits, as it would for a slow reader."""


class StandardInput(io.RawIOBase):
    """The bytes that the client writes, until it closes the stream or `end` is called."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: Queue[bytes] = Queue(_MOST_LINES)
        self._rest = memoryview(b"")
        self._is_at_end = False
        threading.Thread(target=self._read, args=[sys.stdin.fileno()], name="memory-mcp stdin", daemon=True).start()

    def end(self) -> None:
        """Let the reader find the end of the stream, although the client has not closed it."""
        self._is_at_end = True
        with suppress(Full):  # then the reader does not wait
            self._lines.put_nowait(b"")

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self._rest and not self._is_at_end:
            self._rest = memoryview(self._lines.get())
        self._is_at_end = self._is_at_end or not self._rest
        if self._is_at_end:
            return 0
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _read(self, descriptor: int) -> None:
        # A file of its own: Python closes `sys.stdin` at its end, and would wait for a thread that reads from it.
        with (
            suppress(OSError),
            os.fdopen(descriptor, "rb", closefd=False) as client,
        ):  # such as a terminal that has gone
            for line in client:
                self._lines.put(without_halves(line))
        self._lines.put(b"")


@contextmanager
def stoppable_standard_input() -> Generator[StandardInput]:
    """Make `sys.stdin` a stream whose end can be brought about."""
    before, stream = sys.stdin, StandardInput()
    sys.stdin = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", errors="replace")
    try:
        yield stream
    finally:
        sys.stdin = before
