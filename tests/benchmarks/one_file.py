"""The limits of one file: many owners, one large owner with and without vectors, and writers and readers at once.

    python tests/benchmarks/one_file.py [owners OWNERS] [words RECORDS] [vectors RECORDS] [busy SECONDS]

Each figure stands beside that of `plain_sqlite.py` with the same texts: the least that a file can cost. Each is taken
in a process of its own, which has only opened the file. Vectors are random, so no model is measured. All times but
those of the last lines are milliseconds of CPU, which other programs on the machine change little.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from common import GivenVectors, drafts, percentiles, questions, time_each
from memory_core import BoundMemory, Draft, Memory
from plain_sqlite import PlainFile

AT_ONCE: Final = 1_000
ASKED: Final = 20
MINUTE: Final = 60.0


@dataclass(frozen=True)
class File:
    """A file with so many owners of so many records each."""

    name: str
    path: Path
    owners: int
    each: int
    has_vectors: bool

    @property
    def plain(self) -> Path:
        return self.path.with_suffix(".plain")

    def vectors(self) -> GivenVectors | None:
        return GivenVectors() if self.has_vectors else None

    def batches(self) -> Iterator[tuple[int, list[Draft]]]:
        """The numbers of the owners, each with texts that are written at once."""
        for owner in range(self.owners):
            for start in range(0, self.each, AT_ONCE):
                yield owner, drafts(min(AT_ONCE, self.each - start), owner * self.each + start)


Figures = dict[str, float]


def resident() -> float:
    """The memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096 / 1e6


async def cpu(work: Awaitable[object]) -> float:
    """The milliseconds of CPU time that this process takes meanwhile."""
    began = time.process_time()
    await work
    return (time.process_time() - began) * 1e3


def cpu_of(work: Callable[[], object]) -> float:
    """The same of a function."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


def handle_of(memory: Memory, owner: int) -> BoundMemory:
    return memory.bind(app="bench", user=f"user {owner}")


def fill(file: File) -> Figures:
    """Write the file."""

    async def work() -> float:
        taken = 0.0
        async with Memory(file.path, embedder=file.vectors()) as memory:
            for owner, texts in file.batches():
                taken += await cpu(handle_of(memory, owner).add_many(texts))
        return taken

    return {"add": asyncio.run(work()) / (file.owners * file.each), "file": file.path.stat().st_size / 1e6}


def fill_plain(file: File) -> Figures:
    """Write the same texts into a plain file."""
    taken, plain = 0.0, PlainFile(file.plain, file.vectors())
    for owner, texts in file.batches():
        bare = [draft.text for draft in texts]
        taken += cpu_of(partial(plain.add, owner, bare))
    plain.close()
    return {"add": taken / (file.owners * file.each), "file": file.plain.stat().st_size / 1e6}


def ask(file: File) -> Figures:
    """Open the file, and search its first owner."""

    async def work() -> Figures:
        before, asked = resident(), questions(ASKED + 1, 1)
        memory = Memory(file.path, embedder=file.vectors())
        opening = await cpu(memory.open())
        handle = handle_of(memory, 0)
        first = await cpu(handle.search(asked[0]))
        later = await cpu(time_each(handle.search, asked[1:])) / ASKED
        held = resident() - before
        counting, listing = await cpu(handle.stats()), await cpu(handle.list(limit=50))
        await memory.close()
        return {"open": opening, "first": first, "search": later, "stats": counting, "page": listing, "memory": held}

    return asyncio.run(work())


def ask_plain(file: File) -> Figures:
    """The same of the plain file."""
    before, asked = resident(), questions(ASKED, 1)
    plain = PlainFile(file.plain, file.vectors())
    first = cpu_of(partial(plain.read, 0))
    later = sum(cpu_of(partial(plain.search, 0, question)) for question in asked) / ASKED
    return {"first": first, "search": later, "memory": resident() - before}


def in_new_process(work: Callable[[File], Figures], file: File) -> Figures:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, file).result()


def row(name: str, owners: int, each: int, *, has_vectors: bool) -> str:
    """A line of the table: ours / plain."""
    with tempfile.TemporaryDirectory() as folder:
        file = File(name, Path(folder) / "memory.db", owners, each, has_vectors)
        ours = in_new_process(fill, file) | in_new_process(ask, file)
        plain = in_new_process(fill_plain, file) | in_new_process(ask_plain, file)
    beside = {key: f"{ours[key]:,.{digits}f} / {plain[key]:,.{digits}f}" for key, digits in _BESIDE.items()}
    return (
        f"| {name} | {beside['add']} | {ours['open']:.0f} | {beside['first']} | {beside['search']} | "
        f"{ours['stats']:.0f} | {ours['page']:.1f} | {beside['file']} | {beside['memory']} |"
    )


_BESIDE: Final = {"add": 3, "first": 0, "search": 1, "file": 0, "memory": 0}
"""The figures that both have, with the digits that are shown."""


@dataclass
class Busy:
    """Writers and readers of one process, each with an owner of 1,000 records; what each call took, in seconds."""

    memory: Memory
    seconds: float
    adds: list[tuple[float, float]]
    searches: list[tuple[float, float]]
    """The start and the length of each."""

    async def run(self, writers: int, readers: int) -> None:
        self.began = time.perf_counter()
        await asyncio.gather(*map(self._write, range(writers)), *map(self._read, range(readers)))

    async def _write(self, number: int) -> None:
        written = 0
        while self._goes_on():
            texts = drafts(AT_ONCE, 1_000_000 * (number + 1) + written)
            for draft in texts:
                if not self._goes_on():
                    return
                self.adds.append(await self._timed(handle_of(self.memory, number).add(draft)))
                written += 1

    async def _read(self, number: int) -> None:
        asked = questions(ASKED, number)
        while self._goes_on():
            for question in asked:
                self.searches.append(await self._timed(handle_of(self.memory, number).search(question)))

    def _goes_on(self) -> bool:
        return time.perf_counter() - self.began < self.seconds

    async def _timed(self, work: Awaitable[object]) -> tuple[float, float]:
        start = time.perf_counter()
        await work
        return start - self.began, time.perf_counter() - start


async def busy(seconds: float, each: int = 8) -> None:
    """Print the calls of the first and of the last minute, beside single commits of a plain file."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "memory.db", embedder=GivenVectors()) as memory:
            for owner in range(each):
                await handle_of(memory, owner).add_many(drafts(AT_ONCE, owner))
            work = Busy(memory, seconds, [], [])
            await work.run(each, each)
        plain = PlainFile(Path(folder) / "plain.db", GivenVectors())
        commits = [seconds_of(partial(plain.add, 0, [drafts(1, n)[0].text])) for n in range(200)]
        plain.close()
    print(f"{each} writers and {each} readers, {seconds:g} s; one commit of a plain file: {show(commits)}")
    span = min(MINUTE, seconds / 2)
    for name, calls in (("adds", work.adds), ("searches", work.searches)):
        first = [took for start, took in calls if start < span]
        last = [took for start, took in calls if start >= seconds - span]
        print(f"{name}: {len(calls):,}, the longest {1e3 * max(took for _, took in calls):,.0f} ms")
        print(f"  the first {span:g} s: {len(first) / span:,.0f} a second, {show(first)}")
        print(f"  the last {span:g} s: {len(last) / span:,.0f} a second, {show(last)}")


def seconds_of(work: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(seconds: list[float]) -> str:
    p50, p95 = percentiles(seconds)
    return f"p50 {p50:.1f}, p95 {p95:.1f} ms"


def main(owners: int, words: int, vectors: int, seconds: int) -> None:
    print("| what | add, a record | open | first search | a search | stats | a page of 50 | file, MB | memory, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    print(row(f"{owners:,} owners of 10", owners, 10, has_vectors=False), flush=True)
    print(row(f"one owner of {words:,}, words only", 1, words, has_vectors=False), flush=True)
    print(row(f"one owner of {vectors:,}, with vectors", 1, vectors, has_vectors=True), flush=True)
    asyncio.run(busy(seconds))


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], map(int, sys.argv[2::2]), strict=True))
    main(given.get("owners", 2_000), given.get("words", 50_000), given.get("vectors", 20_000), given.get("busy", 20))
