"""Deletion of expired items in the background, as LangGraph's stores offer it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from memory_core import InvalidInputError, MemoryCoreError
from memory_core.adapting import reason_for_log

logger = logging.getLogger(__name__)

DEFAULT_MINUTES: Final = 5.0
"""Interval of LangGraph's own stores."""


class Sweeper:
    """A thread that sweeps at intervals until it is stopped or the process ends."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._ended: Future[None] = Future()

    def start(self, sweep: Callable[[], int], minutes: object) -> Future[None]:
        """Start the thread unless it is running; return what ends with it, and ends it when cancelled.

        Raises:
            InvalidInputError: The interval is not a positive number.
        """
        if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes < threading.TIMEOUT_MAX:
            raise InvalidInputError(f"sweep_interval_minutes must be a positive number, not {minutes!r}")
        if self._thread is not None and self._thread.is_alive() and not self._ended.done():
            return self._ended
        self._ended = ended = Future[None]()
        stopping = threading.Event()
        ended.add_done_callback(lambda _: stopping.set())

        def run() -> None:
            while not stopping.wait(60 * minutes):
                try:
                    sweep()
                except MemoryCoreError as error:
                    logger.warning("expired items stay until the next sweep: %s", reason_for_log(error))

        self._thread = threading.Thread(target=run, name="memory-core ttl sweeper", daemon=True)
        self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread; returns whether it has ended within `timeout` seconds."""
        if not self._ended.done():
            self._ended.set_result(None)
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()
