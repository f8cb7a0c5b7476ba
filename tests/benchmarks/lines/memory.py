"""The memory that a record of a loaded owner takes, its vector included, and that of a process at rest.

Each is the resident memory of a process of its own. At rest it has opened a file with the default model, added a text
and searched; beside it stands a process that has loaded only numpy, onnxruntime and the model.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from common import DIMENSIONS, GivenVectors
from lines.figure import absolute
from lines.filling import fill
from lines.result import Measured
from memory_core import Memory
from memory_core.embedding import minilm

ROUNDS, SIZE = 3, 50_000
RECORD, REST = 1.5, 110.0
"""Most kB of a record, most MB of a process."""
RESIDENT = """
import asyncio, gc, sys
from memory_core import Memory

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
"""
LOADED = """
from common import GivenVectors

async def main():
    async with Memory(sys.argv[1], embedder=GivenVectors()) as memory:
        await memory.bind(app="bench", user="small").search("warm up")
        before = resident()
        for question in ("one two three", "four five six"):
            await memory.bind(app="bench", user="large").search(question)
        print(resident() - before)

asyncio.run(main())
"""
AT_REST = """
async def main():
    async with Memory(sys.argv[1]) as memory:
        ann = memory.bind(app="bench", user="ann")
        await ann.add("The key of room 7 is blue.")
        await ann.search("Where is the key?")
        await asyncio.sleep(0.5)
        print(resident())

asyncio.run(main())
"""
MODEL = """
import numpy, onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(resident())
"""


def of_a_process(code: str, argument: str) -> int:
    """The bytes that it prints."""
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", f"import sys\nsys.path[:0] = {[here, *sys.path[1:]]}\n{RESIDENT}{code}", argument]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


async def filled(path: Path, size: int) -> None:
    async with Memory(path, embedder=GivenVectors()) as memory:
        for user, count in (("small", 10), ("large", size)):
            await fill(memory.bind(app="bench", user=user), count, seed=1)


def measure(*, short: bool) -> Measured:
    size, rounds = (200, 1) if short else (SIZE, ROUNDS)
    model = str(Path(minilm.__file__).parent / "model.onnx")
    records, rest, floor = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        asyncio.run(filled(path, size))
        for number in range(rounds):
            records.append(of_a_process(LOADED, str(path)) / size / 1e3)
            rest.append(of_a_process(AT_REST, str(Path(folder) / f"rest{number}.db")) / 1e6)
            floor.append(of_a_process(MODEL, model) / 1e6)
    vector = DIMENSIONS * 2 / 1e3
    return Measured(
        [
            absolute(f"a record of {size:,}", "kB", records, beside="its vector", other=[vector] * rounds, most=RECORD),
            absolute("the process at rest", "MB", rest, beside="the model alone", other=floor, most=REST),
        ]
    )
