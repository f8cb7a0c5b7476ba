"""An owner's memories as lines of JSON, while they are read: nothing waits in memory or in a file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from queue import Full, Queue
from typing import Final

from memory_core.memory import Memory
from memory_core.models import Scope
from memory_core.transfer.jsonl import export_jsonl

_AHEAD: Final = 8
"""Parts that wait for a client that reads slowly."""
_PART_BYTES: Final = 65_536
_PAUSE_SECONDS: Final = 0.2
"""How long it takes at most until an export ends that nobody reads any more."""


class _ReaderLeftError(Exception):
    """Nobody reads the export any more."""


async def exported(memory: Memory, owner: Scope, *, vectors: bool) -> AsyncIterator[bytes]:
    """The lines of `export_jsonl`, in parts; the last line counts the records, so that a cut export is recognised."""
    parts: Queue[bytes | None] = Queue(_AHEAD)
    left = threading.Event()
    waiting = bytearray()

    def put(part: bytes) -> None:
        while not left.is_set():
            with suppress(Full):
                parts.put(part, timeout=_PAUSE_SECONDS)
                return
        raise _ReaderLeftError

    def write(line: bytes) -> None:
        waiting.extend(line)
        if len(waiting) >= _PART_BYTES:
            put(bytes(waiting))
            waiting.clear()

    async def work() -> None:
        try:
            await export_jsonl(memory, write, owner=owner, vectors=vectors)
            await asyncio.to_thread(put, bytes(waiting))
            await asyncio.to_thread(parts.put, None)
        except _ReaderLeftError:
            return
        except BaseException:
            left.set()
            with suppress(Full):
                parts.put_nowait(None)
            raise

    task = asyncio.create_task(work())
    try:
        while (part := await asyncio.to_thread(parts.get)) is not None:
            yield part
        await task
    finally:
        left.set()
