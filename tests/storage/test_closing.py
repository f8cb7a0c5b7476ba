"""A file that is being closed refuses what comes too late, and is not taken for a damaged one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memory_core import ClosedError
from memory_core.storage.sqlite.connection import connect


async def test_a_read_that_comes_while_a_file_is_being_closed_is_refused(tmp_path: Path) -> None:
    connection = await connect(str(tmp_path / "memory.db"))
    closing = asyncio.create_task(connection.close())
    await asyncio.sleep(0)  # now the closing is queued
    with pytest.raises(ClosedError):
        await connection.run(lambda db: db.execute("SELECT 1").fetchall())
    await closing
