"""A process that adds records until it is done or killed: `writing_process.py FILE WORKER COUNT ACKNOWLEDGED`.

It goes on where an earlier life of it stopped. A record is acknowledged, by a line in the file ACKNOWLEDGED, once its
`add` has returned; the line is handed to the system before the next record is looked at.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_core import BoundMemory, Draft, Memory
from tests.storage.embedders import WordEmbedder


def draft(worker: str, number: int) -> Draft:
    """The record of a worker and a number; sessions are shared by all workers."""
    return Draft(
        f"worker {worker} wrote number {number}",
        session=f"s{number % 3}",
        author=f"w{worker}",
        source_key=f"{worker}-{number}",
        occurred_at=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
    )


async def main(path: str, worker: str, waiting: list[int], log: int) -> None:
    async with Memory(path, embedder=WordEmbedder()) as memory:
        handle = memory.bind(app="crash", user="ann")
        while waiting:
            size = random.randint(1, 12)
            group, waiting = waiting[:size], waiting[size:]
            if size % 3:
                await asyncio.gather(*(add_one(handle, worker, number, log) for number in group))
            else:
                await handle.add_many([draft(worker, number) for number in group])
                os.write(log, "".join(f"{number}\n" for number in group).encode())


async def add_one(handle: BoundMemory, worker: str, number: int, log: int) -> None:
    await handle.add(draft(worker, number), embed="later" if number % 5 == 0 else "now")
    os.write(log, f"{number}\n".encode())


def unacknowledged(path: Path, count: int) -> list[int]:
    """The numbers without a line in the file."""
    done = set(path.read_text().split()) if path.exists() else set[str]()
    return [number for number in range(count) if str(number) not in done]


if __name__ == "__main__":
    acknowledged = Path(sys.argv[4])
    asyncio.run(
        main(
            sys.argv[1],
            sys.argv[2],
            unacknowledged(acknowledged, int(sys.argv[3])),
            os.open(acknowledged, os.O_CREAT | os.O_APPEND | os.O_WRONLY),
        )
    )
