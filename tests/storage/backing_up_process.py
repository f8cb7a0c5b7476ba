"""A process that backs up, restores or upgrades until it is killed: `backing_up_process.py WHAT FOLDER LIFE`.

A line on standard output acknowledges what has returned: the number of a record, or the name of a copy.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_core import Memory
from memory_core.storage.sqlite import backup as copies
from memory_core.storage.sqlite import files, schema
from tests.storage.embedders import WordEmbedder

copies.SLICE_PAGES = 1  # type: ignore[misc]  # so that a copy takes long enough to be killed in


async def back_up(folder: Path, life: str) -> None:
    """Write and back up at the same time."""
    async with Memory(folder / "memory.db", embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")

        async def write() -> None:
            for number in itertools.count():
                await ann.add(f"life {life} wrote number {number}", embed="later")
                acknowledge(f"life {life} wrote number {number}")

        async def copy() -> None:
            for number in itertools.count():
                made = await memory.backup(folder / f"backup-{life}-{number}.db")
                acknowledge(made.name)

        await asyncio.gather(write(), copy())


async def restore(folder: Path, life: str) -> None:
    """Restore over the same file, again and again."""
    for number in itertools.count():
        await Memory.restore(folder / "backup.db", folder / "memory.db", overwrite=True)
        acknowledge(f"restored {life} {number}")


def upgrade(folder: Path, life: str) -> None:
    """Bring a file of made-up older formats up to date, and write to it."""
    schema.MIGRATIONS = (*schema.MIGRATIONS, *(step(number) for number in range(40)))
    files.prepare_file(folder / "memory.db")
    acknowledge(f"upgraded {life}")


def step(number: int) -> schema.Migration:
    """A made-up next format."""

    def add_a_column(db: sqlite3.Connection) -> None:
        db.execute(f"ALTER TABLE owner ADD COLUMN mood{number} TEXT")
        db.execute(f"UPDATE owner SET mood{number} = 'calm'")

    return add_a_column


def acknowledge(line: str) -> None:
    """Say that something has returned."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    what, where, life = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    acknowledge("ready")
    if what == "upgrade":
        upgrade(where, life)
    else:
        asyncio.run({"backup": back_up, "restore": restore}[what](where, life))
