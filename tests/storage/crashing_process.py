"""A process that leaves a write-ahead log: `crashing_process.py FILE WHAT` writes and ends without closing the file.

| WHAT | the log that it leaves |
|---|---|
| appended | begins where the file ends |
| wrapped | has begun again at least once |
| partly merged | in part merged into the file |
| rewritten | has the pages of a VACUUM |
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_core import Memory


async def main(path: str, what: str) -> None:
    memory = Memory(path, embedder=None)
    bob = memory.bind(user="bob")
    for number in range(300 if what == "wrapped" else 20):
        await bob.add(f"new fact {number} of bob")
    with reading(path):
        await bob.add("a fact that a reader of the earlier state does not see")
        if what == "rewritten":
            await memory.operator().vacuum()
        if what == "partly merged":
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        await bob.add("the last fact")
        os._exit(9)


@contextmanager
def reading(path: str) -> Generator[None]:
    """A reader of the present state, so that nothing later is merged into the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM record").fetchone()
        yield


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
