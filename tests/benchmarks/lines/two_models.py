"""The default embedder beside MiniLM alone: what each text costs, and what its longer vectors cost in a large owner.

Texts and questions are those of a corpus in English. The large owners have given vectors of as many numbers, since
embedding 100,000 texts would take ten minutes a round. Each side is a process of its own, and the two take turns.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import DIMENSIONS, GivenVectors
from lines.figure import Figure, absolute, relative
from lines.filling import fill
from lines.result import Measured
from memory_core import Memory
from memory_core.embedding.multilingual import encoder

ROUNDS, TEXTS = 7, 200
SIZES = (10_000, 100_000)
BESIDE = "MiniLM alone"
ADD, QUERY, START, RESIDENT = 1.6, 1.0, 60.0, 80.0
"""Most times the CPU of an add, most milliseconds more a query and a start, most MB more of a process."""
OF_EACH = {"default": "MultilingualEmbedder", "alone": "MiniLmEmbedder"}
EMBEDDED = """
import asyncio, json, sys, time
import memory_core

file, of, count = sys.argv[1:]

async def main():
    async with memory_core.Memory(file, embedder=getattr(memory_core, of)()) as memory:
        ann = memory.bind(app="bench", user="ann")
        await ann.add("The key of room 7 is blue.")
        await ann.search("Where is the key?")
        found = {"start": 1e3 * time.process_time(), "resident": resident() / 1e6}
        from tests.corpora.loading import owners

        some = [owner for owner in owners("assistant_chats")]
        texts = [record.text for owner in some for record in owner.records][: int(count)]
        asked = [question.text for owner in some for question in owner.questions][: int(count)]
        start = time.process_time()
        for text in texts:
            await ann.add(text)
        found["add"] = 1e3 * (time.process_time() - start) / len(texts)
        start = time.process_time()
        for question in asked:
            await ann.search(question)
        found["query"] = 1e3 * (time.process_time() - start) / len(asked)
        print(json.dumps(found))

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
    """What a process of its own prints."""
    here = Path(__file__).parents[1]
    path = [str(here), str(here.parents[1]), *sys.path[1:]]
    command = [sys.executable, "-c", f"import sys\nsys.path[:0] = {path}\n{HELPER}{code}", *arguments]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: Mapping[str, float] = json.loads(printed)
    return found


def of_texts(rounds: int, count: int) -> list[Figure]:
    """What embedding costs."""
    found: dict[str, list[Mapping[str, float]]] = {side: [] for side in OF_EACH}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for side, name in OF_EACH.items():
                file = str(Path(folder) / f"{side}{number}.db")
                found[side].append(measured(EMBEDDED, file, name, str(count)))

    def of(what: str, side: str) -> list[float]:
        return [each[what] for each in found[side]]

    def more(what: str) -> list[float]:
        return [ours - other for ours, other in zip(of(what, "default"), of(what, "alone"), strict=True)]

    ours, other = of("add", "default"), of("add", "alone")
    return [
        relative("an added text, CPU", "ms", ours, beside=BESIDE, other=other, most=ADD),
        *(
            absolute(f"{name} more", unit, more(what), beside=f"{BESIDE}, in all", other=of(what, "alone"), most=most)
            for name, what, unit, most in (
                ("a question, CPU", "query", "ms", QUERY),
                ("a start, CPU", "start", "ms", START),
                ("a process at rest", "resident", "MB", RESIDENT),
            )
        ),
    ]


async def filled(path: Path, dimensions: int, size: int) -> None:
    async with Memory(path, embedder=GivenVectors(dimensions)) as memory:
        for user, count in (("small", 10), ("large", size)):
            await fill(memory.bind(app="bench", user=user), count, seed=1)


def of_records(size: int, rounds: int) -> list[Figure]:
    """What the longer vectors of an owner cost."""
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
    rounds, texts, sizes = (1, 3, (50,)) if short else (ROUNDS, TEXTS, SIZES)
    return Measured([*of_texts(rounds, texts), *(each for size in sizes for each in of_records(size, rounds))])
