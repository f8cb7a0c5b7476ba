"""The connection of aiosqlite, and the only use of its private parts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

import aiosqlite

_ROWS_AT_ONCE: Final = 64
"""The number of rows that aiosqlite's own cursors would fetch together; they are not used."""


class RawConnection(aiosqlite.Connection):
    """The private parts of aiosqlite that this package uses; nothing else touches them.

    aiosqlite's public methods go to the connection's thread and back for every statement. A store runs a whole
    transaction in one such hop, also for callers on other event loops, and closes the file in a forked child, which has
    no such thread. `tests/storage/test_raw_connection.py` names what is missing if a version of aiosqlite changes them.
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, _ROWS_AT_ONCE)

    @property
    def raw(self) -> sqlite3.Connection | None:
        """The sqlite3 connection; `None` before it is opened and after it is closed."""
        return self._connection

    @property
    def is_running(self) -> bool:
        """True if the thread accepts work."""
        return self._running

    def queue(self, work: Callable[[], object]) -> None:
        """Queue a call in the connection's thread, from any other thread. The call must not raise."""
        self._tx.put_nowait((None, _Job(work)))  # pyright: ignore[reportUnknownMemberType]  # aiosqlite leaves it open

    async def call(self, work: Callable[[], object]) -> None:
        """Call something in the connection's thread and wait for it."""
        await self._execute(work)  # type: ignore[no-untyped-call]  # pyright: ignore[reportUnknownMemberType]

    def detach(self) -> sqlite3.Connection | None:
        """Give up the thread and return the sqlite3 connection."""
        db, self._connection, self._running = self._connection, None, False
        return db


class _Job:
    """Work whose `repr`, which aiosqlite logs, shows neither queries nor texts nor owners."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def __call__(self) -> None:
        self._work()
