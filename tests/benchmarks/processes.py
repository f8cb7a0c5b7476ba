"""Adds by several processes to one file, beside the same number of writers in one process.

    python tests/benchmarks/processes.py [seconds]

Eight processes with 16 writers each, then one process with 128, each in a folder of its own; vectors are given, so that
only writing is measured. Prints how many adds a second there were, and how long one took.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from memory_core import Fingerprint, Memory

PROCESSES = 8
WRITERS = 16
SECONDS = 20.0
DIMENSIONS = 384


class GivenVectors:
    """Every text has the same vector, which costs nothing."""

    fingerprint = Fingerprint(name="given", revision="1", dimensions=DIMENSIONS)

    def __init__(self) -> None:
        self._vector = np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed_documents`."""
        return np.tile(self._vector, (len(texts), 1))

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """See `Embedder.embed_query`."""
        return self._vector

    async def close(self) -> None:
        """There is nothing to let go of."""


async def write(path: str, name: str, writers: int) -> list[float]:
    """Add until the time has come that standard input names; returns how long each add took, in seconds."""
    took: list[float] = []
    async with Memory(path, embedder=GivenVectors()) as memory:
        ann = memory.bind(user="ann")
        await ann.add(f"{name} begins")
        print("ready", flush=True)
        until = float(await asyncio.to_thread(input))

        async def add_on(writer: int) -> None:
            number = 0
            while time.time() < until:
                began = time.perf_counter()
                await ann.add(f"{name}.{writer} wrote number {number} about {'this and that ' * 12}")
                took.append(time.perf_counter() - began)
                number += 1

        await asyncio.gather(*(add_on(writer) for writer in range(writers)))
    return took


def measure(processes: int, writers: int, seconds: float) -> list[float]:
    """The times that the adds of all processes took."""
    with tempfile.TemporaryDirectory(prefix="memory-core-processes-") as folder:
        command = [sys.executable, __file__, "--write", str(Path(folder, "memory.db"))]
        started = [
            subprocess.Popen(
                [*command, f"p{n}", str(writers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for n in range(processes)
        ]
        for process in started:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("a writing process did not start")
        until = time.time() + seconds
        for process in started:
            if process.stdin is not None:
                process.stdin.write(f"{until}\n")
                process.stdin.flush()
        took: list[float] = []
        for process in started:
            said, _ = process.communicate()
            if process.returncode:
                raise RuntimeError(f"a writing process ended with {process.returncode}")
            took += [float(line) for line in said.split()]
    return took


def main(seconds: float) -> None:
    """Print both measurements and how they compare."""
    found: list[tuple[float, float]] = []
    for processes, writers in ((PROCESSES, WRITERS), (1, PROCESSES * WRITERS)):
        took = np.array(measure(processes, writers, seconds)) * 1_000
        found.append((median(took), float(np.percentile(took, 99))))
        print(
            f"processes: {processes}, writers in each: {writers}; {len(took) / seconds:,.0f} adds/s, "
            f"p50 {found[-1][0]:.1f} ms, p99 {found[-1][1]:.1f} ms, longest {took.max():.0f} ms"
        )
    (many, many_99), (one, one_99) = found
    print(f"many processes beside one: p50 {many / one:.1f} times, p99 {many_99 / one_99:.1f} times")


if __name__ == "__main__":
    if "--write" in sys.argv:
        path, name, writers = sys.argv[2:]
        print("\n".join(map(str, asyncio.run(write(path, name, int(writers))))))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
