"""Long-term memories of a SPADE agent: storing by 16 writers and every kind of search, beside stock spade_llm.

    python tests/benchmarks/spade_memory.py [--alone] [COUNT ...]

Both write durably (`synchronous=FULL`). Searches of ours embed the question with the default model; the vectors of the
stored texts follow from their hashes, so that filling does not take hours. Questions of both are asked in turns; with
`--alone` only ours are.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import sqlite3
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from numpy.typing import NDArray

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from spade_llm.memory import AgentBaseMemory as StockMemory

from common import GivenVectors, drafts, percentiles, questions
from memory_core import Draft, Memory
from memory_core.embedding.minilm import MiniLmEmbedder
from memory_spade.memory import AgentBaseMemory
from memory_spade.memory.backends.handle_backend import HandleBackend

AGENT = "agent@example.com"
WRITERS = 16
ROUNDS = 60

Search = Callable[[str], Awaitable[Sequence[object]]]


class RealQuestions(GivenVectors):
    """Texts cost nothing, questions what the default model costs."""

    def __init__(self) -> None:
        super().__init__()
        self._model = MiniLmEmbedder()

    async def embed_query(self, text: str) -> NDArray:  # type: ignore[type-arg]  # float32, as in the base
        await self._model.embed_query(text)
        return self.vector(text)

    async def close(self) -> None:
        await self._model.close()


def texts(count: int) -> list[str]:
    return [f"{draft.text} item{number}x" for number, draft in enumerate(drafts(count, 11))]


async def at_once(store: Callable[[str], Awaitable[object]], contents: Sequence[str]) -> tuple[float, int]:
    """How many a second, by `WRITERS` tasks, and how many were refused."""
    refused = 0

    async def write(mine: Sequence[str]) -> None:
        nonlocal refused
        for content in mine:
            try:
                await store(content)
            except sqlite3.OperationalError:  # stock: the database is locked
                refused += 1

    start = time.perf_counter()
    await asyncio.gather(*(write(contents[number::WRITERS]) for number in range(WRITERS)))
    return (len(contents) - refused) / (time.perf_counter() - start), refused


async def storing(folder: Path) -> None:
    contents = texts(960)
    stock = StockMemory(AGENT, memory_path=str(folder))
    await stock.store_memory("fact", "warm up")
    theirs, refused = await at_once(lambda content: stock.store_memory("fact", content), contents[:320])
    async with Memory(folder / "ours.db") as memory:
        handle = memory.bind(user=AGENT)
        await handle.add("warm up")
        later, _ = await at_once(lambda content: handle.add(Draft(content, kind="fact"), embed="later"), contents)
    ours = AgentBaseMemory(AGENT, folder / "documented")
    await ours.store_memory("warm up", "fact")
    now, _ = await at_once(lambda content: ours.store_memory(content, "fact"), contents[:320])
    await ours.cleanup()
    print(f"stored per second, {WRITERS} writers: stock {theirs:.0f}, and {refused} of 320 refused as locked")
    print(f"  store_memory {now:.0f} ({now / theirs:.1f}x), add(embed='later') {later:.0f} ({later / theirs:.1f}x)")


def fill_stock(path: Path, contents: Sequence[str]) -> None:
    now = datetime.now().isoformat()  # noqa: DTZ005  (what stock writes)
    rows = ((str(uuid.uuid4()), AGENT, "fact", content, None, 1.0, now, now, 0) for content in contents)
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO agent_memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


async def stock_search(folder: Path, contents: Sequence[str]) -> Search:
    stock = StockMemory(AGENT, memory_path=str(folder))
    await stock.store_memory("fact", "warm up")
    fill_stock(folder / "agent_example.com_base_memory.db", contents)
    return stock.search_memories


async def searching(folder: Path, count: int, *, alone: bool) -> None:
    contents = texts(count)
    searches: dict[str, Search] = {} if alone else {"stock": await stock_search(folder, contents)}
    async with Memory(folder / "ours.db", embedder=RealQuestions()) as memory:
        handle = memory.bind(user=AGENT)
        for first in range(0, count, 2_000):
            await handle.add_many([Draft(content, kind="fact") for content in contents[first : first + 2_000]])
        ours = AgentBaseMemory(AGENT, backend=HandleBackend(AGENT, lambda: handle, opened=memory.open, closed=_nothing))
        searches = {"ours": ours.search_memories, **searches}
        dice = random.Random(5)
        common, _ = Counter(word for content in contents[:500] for word in content.split()).most_common(1)[0]
        of_eight = iter(questions(ROUNDS, 5))
        asked = {
            "a rare word": lambda: f"item{dice.randrange(count)}x",
            "a common word": lambda: common,
            "two words of a text": lambda: " ".join(dice.sample(dice.choice(contents).split(), 2)),
            "a question of eight words": lambda: next(of_eight),
            "a question in English": lambda: f"what do they prefer for the API format of item {dice.randrange(count)}?",
            "a word nobody wrote": lambda: f"absent{dice.randrange(count)}",
        }
        print(f"{count} memories, p50 / p95 in ms and hits of 10:")
        for kind, question in asked.items():
            await compare(kind, question, searches)


async def _nothing() -> None:
    """The memory is closed by its block."""


async def compare(kind: str, question: Callable[[], str], searches: Mapping[str, Search]) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    hits = dict.fromkeys(seconds, 0)
    for _ in range(ROUNDS):
        query = question()
        for name, search in searches.items():
            start = time.perf_counter()
            found = await search(query)
            seconds[name].append(time.perf_counter() - start)
            hits[name] += len(found)
    measured: list[str] = []
    for name in searches:
        p50, p95 = percentiles(seconds[name][5:])
        measured.append(f"{name} {p50:6.1f} /{p95:6.1f} ({hits[name] / ROUNDS:4.1f})")
    print(f"  {kind:26} {'   '.join(measured)}")


async def main() -> None:
    logging.disable(logging.ERROR)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("counts", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--alone", action="store_true", help="leave out spade_llm")
    given = parser.parse_args()
    if not given.alone:
        with tempfile.TemporaryDirectory() as folder:
            await storing(Path(folder))
    for count in given.counts:
        with tempfile.TemporaryDirectory() as folder:
            await searching(Path(folder), count, alone=given.alone)


if __name__ == "__main__":
    asyncio.run(main())
