"""A process of its own that maintains Ann's memories again and again, or writes some: file, task."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from memory_core import Draft, Memory
from memory_core.lifecycle import maintain

BEGUN = 5
"""Steps after which it can be killed."""


async def main(file: str, task: str) -> None:
    async with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        if task == "write":
            for number in range(100):
                await ann.add(Draft(f"Cook {number} stirs pot {number}", kind="fact"))
            return
        begun = Path(f"{file}.begun")
        for _ in range(3):
            await maintain(ann, progress=lambda progress: begun.touch() if progress.done == BEGUN else None)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
