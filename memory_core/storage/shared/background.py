"""Work in the background of a store, repeated for as long as the store is open."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from memory_core.concurrency.loop import is_cancelled
from memory_core.errors import EmbeddingError, StorageError, reason_for_log

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
"""Pauses double from the first to this one while the work fails."""


class BackgroundTask:
    """Does its work at once, whenever it is woken, and when it is due. Lives on the core loop.

    Args:
        name: Of the task, for logs and debuggers.
        work: Does all that there is to do. An embedder or a store that fails ends this round, not the task; any other
            error is a defect, is logged, and ends the task.
        next_due: The time to work without being woken, by the clock of the loop; `None` for never.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], next_due: Callable[[], float | None]) -> None:
        self._work = work
        self._next_due = next_due
        self._wake = asyncio.Event()
        self._wake.set()  # an earlier process may have left something
        self._task = asyncio.create_task(self._serve(), name=name)
        self._task.add_done_callback(_log_defect)

    @property
    def is_woken(self) -> bool:
        """True if it was woken since the last call of `rest`."""
        return self._wake.is_set()

    def wake(self) -> None:
        """Notify the task that there may be something to do."""
        self._wake.set()

    def rest(self) -> None:
        """Forget that it was woken: what it was woken for is about to be done."""
        self._wake.clear()

    async def close(self) -> None:
        """Stop, even if the work answers a cancellation with an error; the next process does the rest."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _serve(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not is_cancelled():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_due()):
                    await self._wake.wait()
            self.rest()
            try:
                await self._work()
                pause = FIRST_PAUSE_SECONDS
            except (EmbeddingError, StorageError) as error:
                if is_cancelled() or not threading.main_thread().is_alive():
                    return  # it is closed, or the interpreter is ending: the next process goes on
                logger.warning("background work waits, next try in %.0f s: %s", pause, reason_for_log(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                self.wake()


def _log_defect(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s has ended until the store is opened again: %s", task.get_name(), reason_for_log(error))
