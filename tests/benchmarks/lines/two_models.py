"""The default embedder beside MiniLM alone: what each text costs, and what its longer vectors cost in a large owner.

Texts and questions are those of a corpus in English. The large owners have given vectors of as many numbers, since
embedding 100,000 texts would take ten minutes a round. The two sides take turns.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from common import DIMENSIONS, GivenVectors
from lines.figure import Figure, absolute, relative
from lines.filling import fill
from lines.result import Measured
from memory_core import Memory, MiniLmEmbedder, MultilingualEmbedder
from memory_core.embedding.multilingual import encoder
from tests.corpora.loading import owners

ROUNDS, TURNS, AT_ONCE = 7, 15, 20
"""Rounds of processes, turns of texts and questions, and how many of these a turn has."""
SIZES = (10_000, 100_000)
BESIDE = "MiniLM alone"
ADD, QUERY, START, RESIDENT = 1.6, 1.0, 60.0, 80.0
"""Most times the CPU of an add, most milliseconds more a query and a start, most MB more of a process."""
AT_REST = """
import asyncio, json, sys, time
import memory_core

file, of = sys.argv[1:]

async def main():
    async with memory_core.Memory(file, embedder=getattr(memory_core, of)()) as memory:
        ann = memory.bind(app="bench", user="ann")
        await ann.add("The key of room 7 is blue.")
        await ann.search("Where is the key?")
        print(json.dumps({"start": 1e3 * time.process_time(), "resident": resident() / 1e6}))

asyncio.run(main())
"""
LOADED = """
import asyncio, json, sys, time
from common import GivenVectors, questions
from memory_core import Memory

file, dimensions = sys.argv[1:]

async def main():
    async with Memory(file, embedder=GivenVectors(int(dimensions))) as memory:
        large = memory.bind(app="bench", user="large")
        await memory.bind(app="bench", user="small").search("warm up")
        before, start = resident(), time.process_time()
        await large.search("one two three")
        found = {"first": 1e3 * (time.process_time() - start)}
        asked = questions(20, 1)
        start = time.process_time()
        for question in asked:
            await large.search(question)
        found["search"] = 1e3 * (time.process_time() - start) / len(asked)
        found["resident"] = (resident() - before) / 1e6
        print(json.dumps(found))

asyncio.run(main())
"""
HELPER = """
def resident():
    import gc
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
"""


def measured(code: str, *arguments: str) -> Mapping[str, float]:
    """The figures that a process of its own prints."""
    here = Path(__file__).parents[1]
    path = [str(here), str(here.parents[1]), *sys.path[1:]]
    command = [sys.executable, "-c", f"import sys\nsys.path[:0] = {path}\n{HELPER}{code}", *arguments]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: Mapping[str, float] = json.loads(printed)
    return found


async def milliseconds(call: Callable[[str], Awaitable[object]], texts: Sequence[str]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    for text in texts:
        await call(text)
    return 1e3 * (time.process_time() - start) / len(texts)


async def of_texts(turns: int, at_once: int) -> list[Figure]:
    """The cost of embedding, of texts and of questions."""
    corpus = owners("assistant_chats")
    texts = [record.text for owner in corpus for record in owner.records]
    asked = [question.text for owner in corpus for question in owner.questions]
    found: dict[str, tuple[list[float], list[float]]] = {"text": ([], []), "question": ([], [])}
    async with (
        Memory(":memory:", embedder=MultilingualEmbedder()) as default,
        Memory(":memory:", embedder=MiniLmEmbedder()) as alone,
    ):
        handles = [memory.bind(app="bench", user="ann") for memory in (default, alone)]
        for handle in handles:
            await handle.add_many(texts[:at_once])
            await handle.search("warm up")
        for turn in range(turns):
            some = slice(turn * at_once, (turn + 1) * at_once)
            for side in (0, 1) if turn % 2 else (1, 0):
                found["text"][side].append(await milliseconds(handles[side].add, texts[some]))
                found["question"][side].append(await milliseconds(handles[side].search, asked[some]))
    ours, other = found["text"]
    return [
        relative("an added text, CPU", "ms", ours, beside=BESIDE, other=other, most=ADD),
        more("a question, CPU", "ms", *found["question"], most=QUERY),
    ]


def more(name: str, unit: str, ours: Sequence[float], other: Sequence[float], *, most: float) -> Figure:
    """The amount by which one costs more."""
    differences = [mine - its for mine, its in zip(ours, other, strict=True)]
    return absolute(f"{name}, more", unit, differences, beside=f"{BESIDE}, in all", other=other, most=most)


def of_processes(rounds: int) -> list[Figure]:
    found: dict[str, tuple[list[float], list[float]]] = {"start": ([], []), "resident": ([], [])}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for side, name in enumerate(("MultilingualEmbedder", "MiniLmEmbedder")):
                taken = measured(AT_REST, str(Path(folder) / f"{name}{number}.db"), name)
                for what, value in taken.items():
                    found[what][side].append(value)
    return [
        more("a start, CPU", "ms", *found["start"], most=START),
        more("a process at rest", "MB", *found["resident"], most=RESIDENT),
    ]


async def filled(path: Path, dimensions: int, size: int) -> None:
    async with Memory(path, embedder=GivenVectors(dimensions)) as memory:
        for user, count in (("small", 10), ("large", size)):
            await fill(memory.bind(app="bench", user=user), count, seed=1)


def of_records(size: int, rounds: int) -> list[Figure]:
    """The cost of the longer vectors of an owner."""
    sides = (DIMENSIONS + encoder.DIMENSIONS, DIMENSIONS)
    found: dict[int, list[Mapping[str, float]]] = {side: [] for side in sides}
    disk: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for side in sides:
            path = Path(folder) / f"{side}.db"
            asyncio.run(filled(path, side, size))
            disk[side] = path.stat().st_size / 1e6
        for _ in range(rounds):
            for side in sides:
                found[side].append(measured(LOADED, str(Path(folder) / f"{side}.db"), str(side)))

    def figure(name: str, unit: str, of: Mapping[int, Sequence[float]]) -> Figure:
        ours, other = (of[side] for side in sides)
        return relative(f"{size:,} records, {name}", unit, ours, beside=BESIDE, other=other)

    return [
        figure("on disk", "MB", {side: [disk[side]] for side in sides}),
        *(
            figure(name, unit, {side: [each[what] for each in found[side]] for side in sides})
            for name, what, unit in (
                ("in memory", "resident", "MB"),
                ("the first search, CPU", "first", "ms"),
                ("a search, CPU", "search", "ms"),
            )
        ),
    ]


def measure(*, short: bool) -> Measured:
    rounds, turns, at_once, sizes = (1, 1, 2, (50,)) if short else (ROUNDS, TURNS, AT_ONCE, SIZES)
    large = [each for size in sizes for each in of_records(size, rounds)]
    return Measured([*asyncio.run(of_texts(turns, at_once)), *of_processes(rounds), *large])
