"""A process that re-embeds a file until it is done or killed: `reembedding_process.py FILE LOG MOST`.

Each batch that its embedder is given becomes a line in LOG. After MOST lines it waits to be killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_core import Memory
from tests.storage.embedders import WordEmbedder


class LoggingEmbedder(WordEmbedder):
    """Says what it does, up to the last batch that it computes."""

    def __init__(self, log: int, most: int) -> None:
        super().__init__("new", 32)
        self._log = log
        self._left = most

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self._left:
            await asyncio.Event().wait()
        self._left -= 1
        os.write(self._log, f"{len(texts)}\n".encode())
        return await super().embed_documents(texts)


async def main(path: str, log: int, most: int) -> None:
    async with Memory(path, embedder=None) as memory:
        await memory.reembed(LoggingEmbedder(log, most))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY), int(sys.argv[3])))
