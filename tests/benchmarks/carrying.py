"""The speed at which memories are carried from one file to another, record by record with their vectors, and compared.

    python tests/benchmarks/carrying.py [COUNT]

The same work moves memories to a server and back, which adds the network and the server.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from common import GivenVectors, drafts
from memory_core import Memory
from memory_core.transfer.copying import copy_memory


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Memory(Path(folder) / "a.db", embedder=GivenVectors())
        target = Memory(Path(folder) / "b.db", embedder=GivenVectors())
        async with source, target:
            handle = source.bind(app="bench", user="ann")
            for first in range(0, count, 1_000):
                await handle.add_many(drafts(min(1_000, count - first), first))
            for what in ("carried and compared", "compared"):
                start = time.perf_counter()
                report = await copy_memory(source, target)
                seconds = time.perf_counter() - start
                assert (report.records, report.behind) == (count, 0)
                print(f"{count} records {what}: {seconds:.1f} s, {count / seconds:.0f} /s")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
