"""Search and adds beside another version of the library, in turns, each version in a process of its own.

    git worktree add ../before REVISION
    python tests/benchmarks/versions.py ../before [TOTAL]

Searches are of an owner of 1,000 among TOTAL (100,000), hybrid, with the vectors of the queries given. Adds are turns
of conversations, one a call by 32 writers, with vectors given, and 256 a call with the default embedder. Ratios are the
medians of the ratios of rounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from common import GivenVectors, drafts, percentiles, questions, time_each
from memory_core import BoundMemory, Draft, Memory

HERE: Final = Path(__file__).parents[2]
OWNED, OTHERS = 1_000, 9_000
ROUNDS: Final = 15
ASKED, WRITTEN, EMBEDDED, WRITERS = 40, 1_600, 512, 32


class BankedVectors(GivenVectors):
    """Vectors from a bank: looking one up costs the same whatever a version embeds of a text."""

    def __init__(self) -> None:
        super().__init__()
        self._bank = np.stack([super(BankedVectors, self).vector(str(number)) for number in range(4_096)])

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._bank[[self._place(text) for text in texts]]

    def vector(self, text: str) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._bank[self._place(text)]
        return found

    @staticmethod
    def _place(text: str) -> int:
        return int.from_bytes(text.encode()[-6:], "big") % 4_096


class Version:
    """A process that runs a round of any kind of work when it is asked, with the library of a folder."""

    def __init__(self, tree: Path, total: int) -> None:
        environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{Path(__file__).parent}"}
        command = [sys.executable, __file__, "--work", str(total)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready = self._answer()

    def run(self, work: str, number: int) -> list[float]:
        """The times that the process says, in seconds."""
        _pipe(self._process.stdin).write(f"{work} {number}\n")
        _pipe(self._process.stdin).flush()
        return self._answer()

    def stop(self) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()

    def _answer(self) -> list[float]:
        answer: list[float] = json.loads(_pipe(self._process.stdout).readline())
        return answer


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream


async def fill(memory: Memory, total: int) -> None:
    """The owner that is searched, and others."""
    sizes = [OWNED, *[OTHERS] * ((total - OWNED) // OTHERS)]
    for owner, size in enumerate(sizes):
        texts = drafts(size, owner)
        for start in range(0, size, 1_000):
            await memory.bind(app="bench", user=f"owner {owner}").add_many(texts[start : start + 1_000])


async def write_singly(handle: BoundMemory, texts: Sequence[Draft]) -> float:
    """Seconds for all."""

    async def write(mine: Sequence[Draft]) -> None:
        for draft in mine:
            await handle.add(draft)

    start = time.perf_counter()
    await asyncio.gather(*(write(texts[first::WRITERS]) for first in range(WRITERS)))
    return time.perf_counter() - start


async def write_embedded(handle: BoundMemory, texts: Sequence[Draft]) -> float:
    """Seconds for all."""
    start = time.perf_counter()
    for first in range(0, len(texts), 256):
        await handle.add_many(texts[first : first + 256])
    return time.perf_counter() - start


async def work(total: int) -> None:
    """Do what standard input asks for, and say how long each call took."""
    with tempfile.TemporaryDirectory() as folder:
        given = Memory(Path(folder) / "given.db", embedder=BankedVectors())
        embedding = Memory(Path(folder) / "embedded.db")
        await fill(given, total)
        owner = given.bind(app="bench", user="owner 0")
        await time_each(owner.search, questions(ASKED, 0))
        await write_embedded(embedding.bind(app="bench", user="ann"), drafts(256, 1))
        print(json.dumps([]), flush=True)
        for line in sys.stdin:
            kind, number = line.split()
            if kind == "search":
                seconds = await time_each(owner.search, questions(ASKED, int(number)))
            elif kind == "add":
                user = given.bind(app="bench", user=f"writer {number}")
                seconds = [await write_singly(user, drafts(WRITTEN, int(number)))]
            else:
                user = embedding.bind(app="bench", user=f"writer {number}")
                seconds = [await write_embedded(user, drafts(EMBEDDED, int(number)))]
            print(json.dumps(seconds), flush=True)
        await given.close()
        await embedding.close()


def main(other: Path, total: int) -> None:
    """Both versions, in turns."""
    versions = [Version(HERE, total), Version(other, total)]
    for kind, rounds in (("search", ROUNDS), ("add", ROUNDS), ("embed", 5)):
        found: tuple[list[list[float]], list[list[float]]] = ([], [])
        for number in range(1, rounds + 1):
            turns = (0, 1) if number % 2 else (1, 0)
            for one in turns:
                found[one].append(versions[one].run(kind, number))
        ratios = [statistics.median(ours) / statistics.median(old) for ours, old in zip(*found, strict=True)]
        (p50, p95), (before50, before95) = (percentiles([s for some in one for s in some]) for one in found)
        unit = "ms" if kind == "search" else "ms a round"
        print(
            f"{kind:7} p50 {p50:8.2f} p95 {p95:8.2f} {unit}, before p50 {before50:8.2f} p95 {before95:8.2f}, ", end=""
        )
        print(f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
    for version in versions:
        version.stop()


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        asyncio.run(work(int(sys.argv[2])))
    else:
        main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
