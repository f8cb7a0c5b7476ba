"""Which files of the core one add and one search enter, and on how many threads; a process of its own.

An embedder is a part that can be exchanged, and the default one has a thread of its own. So it is counted separately.
Prints a line for each operation and part: the operation, the part, the number of files, the number of threads, and the
files.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

import memory_core

ROOT = str(Path(memory_core.__file__).parent) + "/"


class Entered:
    """Functions that are called while it counts."""

    def __init__(self) -> None:
        self.counts = False
        self.entered: set[tuple[str, int]] = set()
        """Files with the threads that entered them."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if self.counts and event == "call" and file.startswith(ROOT) and frame.f_code.co_name != "<module>":
            self.entered.add((file.removeprefix(ROOT), threading.get_ident()))

    async def tell(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        """Count one call of `work` and print what it entered."""
        self.entered, self.counts = set(), True
        await work()
        self.counts = False
        of_embedder = {one for one in self.entered if one[0].startswith("embedding/")}
        parts = {"core": self.entered - of_embedder, "embedder": of_embedder, "both": self.entered}
        for part, entered in parts.items():
            files, threads = {file for file, _ in entered}, {thread for _, thread in entered}
            print(name, part, len(files), len(threads), *sorted(files))  # noqa: T201


async def main(entered: Entered) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with memory_core.Memory(f"{folder}/memory.db") as memory:
            ann = memory.bind(app="demo", user="ann")
            await ann.add_many([f"Ann keeps note {n} in drawer {n % 7}" for n in range(50)])
            await ann.search("Where is note 7?")  # the first one loads the model and the owner's index
            await ann.add("The spare key is with Mrs Okafor")
            await ann.search("Where is the spare key?")
            await entered.tell("add", lambda: ann.add("Ann drinks jasmine tea"))
            await entered.tell("search", lambda: ann.search("What does Ann drink?"))


if __name__ == "__main__":
    counter = Entered()
    threading.setprofile(counter)
    sys.setprofile(counter)
    asyncio.run(main(counter))
