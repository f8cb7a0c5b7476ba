"""A process in which a model manages the memory of a file, and which is killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from memory_core import Memory
from memory_core.lifecycle import MaintainPolicy, maintain
from memory_core.supplied import ChatMessage
from tests.lifecycle.scripted import Diligent

POLICY = MaintainPolicy(contradictions="supersede", alike="keep")


class Telling(Diligent):
    """Leaves a mark with each call, so that its parent knows how far it is."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        answer = await super().complete(messages)
        await asyncio.to_thread(Path(f"{self.file}.asked.{len(self.asked)}").touch)
        return answer


async def main(file: str) -> None:
    """Maintain Ann's memories once."""
    async with Memory(file, embedder=None) as memory:
        await maintain(memory.bind(user="ann"), POLICY, model=Telling(file))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
