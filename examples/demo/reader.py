"""A separate process that knows only the file: `python -m demo.reader FILE QUESTION...`"""

from __future__ import annotations

import asyncio
import sys

from demo import transcript
from memory_core import Memory


async def main(path: str, questions: list[str]) -> None:
    async with Memory(path) as memory:
        ann = memory.bind(app="demo", user="ann")
        for question in questions:
            transcript.why(question, await ann.search(question, limit=1, explain=True), limit=1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
