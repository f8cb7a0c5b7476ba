"""The private parts of aiosqlite that `RawConnection` uses."""

from __future__ import annotations

import inspect
import sqlite3
from importlib.metadata import version

import aiosqlite

CHANGED = (
    f"aiosqlite {version('aiosqlite')} has changed {{}}, which memory_core/storage/sqlite/raw_connection.py uses; "
    "adapt that module, or exclude this version in pyproject.toml"
)


async def test_every_private_part_is_as_expected() -> None:
    connection = aiosqlite.Connection(lambda: sqlite3.connect(":memory:"), 64)
    for name, kind in (("_connection", object), ("_running", bool)):
        assert isinstance(getattr(connection, name, CHANGED), kind), CHANGED.format(name)
        assert not isinstance(getattr(connection, name, CHANGED), str), CHANGED.format(name)
    assert callable(getattr(getattr(connection, "_tx", None), "put_nowait", None)), CHANGED.format("_tx")
    assert inspect.iscoroutinefunction(getattr(connection, "_execute", None)), CHANGED.format("_execute")
    called: list[str] = []
    await connection
    assert isinstance(connection._connection, sqlite3.Connection), CHANGED.format("_connection")
    assert connection._running, CHANGED.format("_running")
    connection._tx.put_nowait((None, lambda: called.append("queued")))
    await connection._execute(lambda: called.append("executed"))  # type: ignore[no-untyped-call]
    assert called == ["queued", "executed"], CHANGED.format("_tx or _execute")
    await connection.close()
    assert connection._connection is None, CHANGED.format("_connection")
