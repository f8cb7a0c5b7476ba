"""Import, cold open of a store of 100,000 records, and the first search of an owner of 10,000 nobody has loaded.

python tests/benchmarks/opening.py [TOTAL]
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import GivenVectors, drafts
from memory_core import Memory

MEDIUM = 10_000


async def main(total: int) -> None:
    bare, core = (min(_import_seconds(code) for _ in range(5)) for code in ("pass", "import memory_core"))
    print(f"import memory_core: {1e3 * (core - bare):.0f} ms over the interpreter's own {1e3 * bare:.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "open.db"
        async with Memory(path, embedder=GivenVectors()) as memory:
            for owner, size in (("medium", MEDIUM), ("rest", total - MEDIUM)):
                for start in range(0, size, 1_000):
                    handle = memory.bind(app="bench", user=owner)
                    await handle.add_many(drafts(min(1_000, size - start), start))
        opened, searched = [], []
        for _ in range(5):
            memory = Memory(path, embedder=GivenVectors())
            start_time = time.perf_counter()
            await memory.open()
            opened.append(time.perf_counter() - start_time)
            start_time = time.perf_counter()
            await memory.bind(app="bench", user="medium").search("word1 word2 word3")
            searched.append(time.perf_counter() - start_time)
            await memory.close()
        print(f"open {total} records: {1e3 * sorted(opened)[2]:.1f} ms")
        print(f"first search of an owner of {MEDIUM}: {1e3 * sorted(searched)[2]:.0f} ms")


def _import_seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
