"""A process that maintains Ann's memories again and again, derives some from them, or writes some: file, task."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from memory_core import Draft, Memory
from memory_core.lifecycle import ExtractiveSummarizer, MaintainPolicy, PatternReflector, maintain
from tests.lifecycle.scripted import Diligent

BEGUN = 5
"""Steps after which it can be killed."""


def wait(file: str, task: str) -> None:
    """Report that this process is ready, and wait until the other one is, so that both begin together."""
    Path(f"{file}.{task}").touch()
    while not Path(f"{file}.go").exists():
        time.sleep(0.001)


async def main(file: str, task: str) -> None:
    async with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        if task == "write":
            for number in range(100):
                await ann.add(Draft(f"Cook {number} stirs pot {number}", kind="fact"))
            return
        if task.startswith("derive"):
            await asyncio.to_thread(wait, file, task)
            policy = MaintainPolicy(periods=("week",))
            helpers = ExtractiveSummarizer(), PatternReflector()
            await maintain(ann, policy, model=Diligent(), summarizer=helpers[0], reflector=helpers[1])
            return
        begun = Path(f"{file}.begun")
        for _ in range(3):
            await maintain(ann, progress=lambda progress: begun.touch() if progress.done == BEGUN else None)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
