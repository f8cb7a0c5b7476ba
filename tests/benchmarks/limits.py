"""The cost of hostile and heavy calls of one owner to the others: refusals, and the searches of a neighbour meanwhile.

    python tests/benchmarks/limits.py [SECONDS] [RECORDS]

Eve, with 20,000 records, asks for too much, and is refused; then for as much as the limits allow, for SECONDS (3) each.
Meanwhile Ann, with 500 records in the same file and process, searches every 5 ms.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from common import GivenVectors, drafts, questions
from memory_core import AnyOf, BoundMemory, DataCondition, Draft, InvalidInputError, Memory, Where, data_conditions
from memory_core.values.limits import MAX_QUERY_CHARS

EVERY = 0.005
ENOUGH = 20
"""Repetitions of a call that is refused."""

Call = Callable[[], Awaitable[object]]


def too_much(eve: BoundMemory) -> dict[str, Call]:
    million = [f"id {n}" for n in range(1_000_000)]
    numbers = list(range(1_000_000))
    words, blob = "word a1 b2 " * 900_000, "x" * 20_000_000
    many, texts, condition = numbers * 3, million * 2, [DataCondition(("a",), "eq", 1)] * 1_000_000
    return {
        "query of 10 MB": lambda: eve.search(words),
        "substring of 10 MB": lambda: eve.search(words, mode="substring"),
        "a million ids": lambda: eve.search("tea", where=Where(ids=million)),
        "in a million values": lambda: eve.list(where=Where(matching=[DataCondition(("a",), "in", numbers)])),
        "$in a million values": lambda: eve.list(where=Where(matching=data_conditions({"a": {"$in": numbers}}))),
        "a million conditions": lambda: eve.list(where=Where(matching=condition)),
        "data, a text of 20 MB": lambda: eve.add(Draft("x", data={"a": blob})),
        "data, 3 million numbers": lambda: eve.add(Draft("x", data={"a": many})),
        "data, 2 million texts": lambda: eve.add(Draft("x", data={"a": {"b": texts}})),
        "text of 20 MB": lambda: eve.add(blob),
        "a million tags": lambda: eve.add(Draft("x", tags=million)),
    }


def very_much(eve: BoundMemory, records: int) -> dict[str, Call]:
    dice, serial = random.Random(1), itertools.count()

    def unknown(size: int) -> str:
        return " ".join(f"{dice.getrandbits(40):x}" for _ in range(size // 8))[:size]

    letters = [chr(code) for code in range(0x4E00, 0x9000)]
    every = [DataCondition(("n",), "gt", n + records) for n in range(98)]
    words = itertools.cycle([unknown(MAX_QUERY_CHARS) for _ in range(500)])
    han = itertools.cycle(["".join(dice.choices(letters, k=MAX_QUERY_CHARS)) for _ in range(100)])
    ids = itertools.cycle([[unknown(36) for _ in range(10_000)] for _ in range(20)])
    keywords = [unknown(40) for _ in range(100)]
    book = "".join(dice.choices(letters, k=500_000))
    batch = [f"tea {unknown(200)}" for _ in range(1_000)]
    numbers = list(range(140_000))
    return {
        "query of unknown words": lambda: eve.search(next(words)),
        "query of Han letters": lambda: eve.search(next(han)),
        "query of U+FDFA": lambda: eve.search("\ufdfa" * MAX_QUERY_CHARS),
        "100 conditions": lambda: eve.search(
            "tea", where=Where(matching=[AnyOf([*every, DataCondition(("s",), "eq", str(next(serial)))])])
        ),
        "list, 100 conditions": lambda: eve.list(where=Where(matching=[AnyOf(every)])),
        "delete, 100 conditions": lambda: eve.delete_where(Where(matching=[AnyOf(every)])),
        "list of 10,000": lambda: eve.list(limit=10_000),
        "100 keywords": lambda: eve.search("tea", where=Where(keywords=[*keywords[1:], str(next(serial))])),
        "substring": lambda: eve.search("no such text", mode="substring"),
        "10,000 ids": lambda: eve.search("tea", where=Where(ids=next(ids))),
        "stats": eve.stats,
        "add, a million letters": lambda: eve.add("The quick brown fox jumps over it. " * 28_000, embed="later"),
        "add, 500,000 Han letters": lambda: eve.add(book, embed="later"),
        "add, data of 1 MB": lambda: eve.add(Draft("x", data={"a": numbers})),
        "add_many of 1,000": lambda: eve.add_many(batch, embed="later"),
    }


class Neighbour:
    """Searches all the time, and knows how long each took."""

    def __init__(self, ann: BoundMemory) -> None:
        self._ann = ann
        self._asked = itertools.cycle(questions(200, 3))
        self.took: list[float] = []
        self.worked: list[float] = []
        """The time of the processors for this process meanwhile: about the same on a machine that has nothing else
        to do, and the better measure on any other."""

    async def search_on(self) -> None:
        while True:
            start, before = time.perf_counter(), time.process_time()
            await self._ann.search(next(self._asked))
            self.took.append(time.perf_counter() - start)
            self.worked.append(time.process_time() - before)
            await asyncio.sleep(EVERY)

    def summary(self) -> str:
        if not self.took:
            return "neighbour: no search was answered"
        took, worked, self.took, self.worked = self.took, self.worked, [], []
        return f"neighbour p50/p99/worst {percentiles(took)} ms, CPU {percentiles(worked)} ms of {len(took)}"


def percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return " /".join(f"{1e3 * ordered[int(part * (len(ordered) - 1))]:6.1f}" for part in (0.5, 0.99, 1.0))


async def refused(call: Call) -> str:
    took: list[float] = []
    for _ in range(ENOUGH):
        start = time.perf_counter()
        with suppress(InvalidInputError):
            await call()
            return "was NOT refused"
        took.append(time.perf_counter() - start)
        await asyncio.sleep(EVERY)
    return f"refused in {1e3 * max(took):5.1f} ms at most"


async def answered(call: Call, seconds: float) -> str:
    took: list[float] = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        await call()
        took.append(time.perf_counter() - start)
    return f"answered in {1e3 * sorted(took)[len(took) // 2]:7.1f} ms  "


async def main(seconds: float, records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "limits.db", embedder=GivenVectors()) as memory:
            eve, ann = memory.bind(app="bench", user="eve"), memory.bind(app="bench", user="ann")
            held = [replace(draft, data={"n": n, "s": str(n)}) for n, draft in enumerate(drafts(records, 1))]
            for start in range(0, records, 1_000):
                await eve.add_many(held[start : start + 1_000])
            await ann.add_many(drafts(500, 2))
            await eve.search("warm up")
            await ann.search("warm up")
            neighbor = Neighbour(ann)
            task = asyncio.create_task(neighbor.search_on())
            await asyncio.sleep(seconds)
            print(f"{'nothing else':26} {'':28} {neighbor.summary()}")
            hostile = too_much(eve)
            await asyncio.sleep(1)
            neighbor.summary()
            for name, call in hostile.items():
                result = await refused(call)
                print(f"{name:26} {result:28} {neighbor.summary()}", flush=True)
            heavy = very_much(eve, records)
            await asyncio.sleep(1)
            neighbor.summary()
            for name, call in heavy.items():
                result = await answered(call, seconds)
                print(f"{name:26} {result:28} {neighbor.summary()}", flush=True)
            task.cancel()


if __name__ == "__main__":
    given = [float(value) for value in sys.argv[1:]]
    asyncio.run(main(given[0] if given else 3.0, int(given[1]) if len(given) > 1 else 20_000))
