"""A new process until its first answer, and the first search of an owner that is not loaded.

The process opens a file of 1,000 with the default model and searches once; beside it stands one that loads only
numpy, onnxruntime and the model. First searches stand beside SQLite's own reading of the owner's terms and vectors.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from common import RememberedVectors, questions
from lines.figure import Figure, absolute
from lines.filling import fill
from lines.result import Measured
from memory_core import Memory
from memory_core.embedding import minilm
from memory_core.storage.sqlite.schema import OWNER_BITS

ROUNDS = 9
ANSWER = """
import asyncio, sys
from memory_core import Memory

async def main():
    async with Memory(sys.argv[1]) as memory:
        assert await memory.bind(app="bench", user="ann").search("Where is the key of room 7?", floor=False)

asyncio.run(main())
"""
LOADS = """
import sys
import numpy, onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
MOST = {10_000: 40.0, 100_000: 200.0}


def process(code: str, argument: str) -> float:
    """Milliseconds until it has ended."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, argument], check=True)
    return 1e3 * (time.perf_counter() - start)


async def first_answer(size: int, rounds: int) -> Figure:
    ours, floor = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "start.db")
        async with Memory(path) as memory:
            await fill(memory.bind(app="bench", user="ann"), size, seed=1)
        model = str(Path(minilm.__file__).parent / "model.onnx")
        for _ in range(rounds):
            ours.append(process(ANSWER, path))
            floor.append(process(LOADS, model))
    name = f"a new process, a file of {size:,}"
    return absolute(name, "ms", ours, beside="loading the model alone", other=floor, most=250)


async def first_search(size: int, rounds: int) -> Figure:
    vectors = RememberedVectors()
    asked = questions(rounds, 1)
    for question in asked:
        vectors.vector(question)  # and is known from here on
    ours, floor = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "start.db"
        async with Memory(path, embedder=vectors) as memory:
            await fill(memory.bind(app="bench", user="ann"), size, seed=1)
        for question in asked:
            async with Memory(path, embedder=vectors) as memory:
                start = time.perf_counter()
                await memory.bind(app="bench", user="ann").search(question)
                ours.append(1e3 * (time.perf_counter() - start))
            floor.append(reading(path))
    name = f"first search of an owner of {size:,}"
    return absolute(name, "ms", ours, beside="SQLite reads its rows", other=floor, most=MOST.get(size))


def reading(path: Path) -> float:
    """Milliseconds in which SQLite reads the terms and the vectors of the first owner."""
    with closing(sqlite3.connect(path)) as db:
        start = time.perf_counter()
        for table, key in (("lexical", "key"), ("chunk", "record")):
            among = (1 << OWNER_BITS, 2 << OWNER_BITS)
            db.execute(f"SELECT * FROM {table} WHERE {key} >= ? AND {key} < ?", among).fetchall()
        return 1e3 * (time.perf_counter() - start)


def measure(*, short: bool) -> Measured:
    sizes = (20, 40) if short else MOST
    figures = [asyncio.run(first_answer(10 if short else 1_000, 1 if short else ROUNDS))]
    figures += [asyncio.run(first_search(size, 1 if short else ROUNDS)) for size in sizes]
    return Measured(figures)
