"""`MemoryStore` beside LangGraph's `InMemoryStore` and `AsyncSqliteStore` (their defaults): search, put, memory.

    python tests/benchmarks/langgraph_peers.py [ITEMS ...] [--only OPERATION ...]

Items are texts in the namespaces of 50 users, with 384-dimensional vectors that are looked up rather than computed.
Each store has a process of its own, whose resident memory is measured; the rounds go through the stores in turn.
`AsyncSqliteStore` takes part where `langgraph-checkpoint-sqlite` is installed, and searches where this Python can
load SQLite extensions. Puts are one at a time; ours and `AsyncSqliteStore`'s are on disk when they return.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, PutOp
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from common import DIMENSIONS, GivenVectors, drafts, percentiles, questions
from memory_core import Memory
from memory_langchain import MemoryStore

USERS, ROUNDS, ASKED = 50, 5, 10
OPERATIONS = ("search of one user", "search of all", "put one", "get one")
STORES = ("MemoryStore", "InMemoryStore", "AsyncSqliteStore")


class KnownVectors(GivenVectors):
    """The vectors of `GivenVectors`, made once for each text, for both sides."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, NDArray[np.float32]] = {}

    def vector(self, text: str) -> NDArray[np.float32]:
        if text not in self._known:
            self._known[text] = super().vector(text)
        return self._known[text]


class Lists(Embeddings):
    """The same for LangGraph, which wants lists of numbers."""

    def __init__(self, known: KnownVectors) -> None:
        self._known = known

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._known.vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._known.vector(text).tolist()
        return vector


@contextlib.asynccontextmanager
async def opened(name: str, folder: Path, known: KnownVectors) -> Any:
    """The store, and whether it searches by meaning here."""
    index = IndexConfig(dims=DIMENSIONS, embed=Lists(known), fields=["text"])
    if name == "MemoryStore":
        async with Memory(folder / "ours.db", embedder=known) as memory:
            yield MemoryStore(memory.bind(app="bench", user="everyone"), fields=["text"])
    elif name == "InMemoryStore":
        yield InMemoryStore(index=index)
    else:
        maker: Any = import_module("langgraph.store.sqlite.aio").AsyncSqliteStore
        searches = hasattr(sqlite3.Connection, "enable_load_extension")
        async with maker.from_conn_string(str(folder / "theirs.db"), index=index if searches else None) as store:
            await store.setup()
            yield store


async def serve(name: str, count: int) -> None:
    """The process of one store: fill it, say how much memory that took, then answer each operation with its times."""
    known = KnownVectors()
    texts = [draft.text for draft in drafts(count, 7)]
    asked = questions(ROUNDS * ASKED + 1, 8)
    for text in (*texts, *asked):
        known.vector(text)
    with tempfile.TemporaryDirectory() as folder:
        async with opened(name, Path(folder), known) as store:
            before, start = resident(), time.perf_counter()
            for first in range(0, count, 100):
                await store.abatch([put(number, texts[number]) for number in range(first, min(first + 100, count))])
            seconds = time.perf_counter() - start
            for operation in OPERATIONS:
                await timed(store, operation, asked[-1:], 0, count)
            tell({"items/s": count / seconds, "MB": (resident() - before) / 1e6})
            for line in sys.stdin:
                operation, number = json.loads(line)
                some = asked[number * ASKED :][:ASKED]
                tell(await timed(store, operation, some, number, count))


async def timed(store: BaseStore, operation: str, asked: list[str], round_number: int, count: int) -> list[float]:
    """How long each call took, in seconds."""
    seconds: list[float] = []
    for number, question in enumerate(asked):
        user, start = f"u{number % USERS}", time.perf_counter()
        match operation:
            case "search of one user":
                await store.asearch(("users", user), query=question)
            case "search of all":
                await store.asearch(("users",), query=question)
            case "put one":
                await store.aput(("users", user), f"new {round_number} {number}", {"text": question})
            case _:
                await store.aget(("users", user), str(number))
        seconds.append(time.perf_counter() - start)
    return seconds


def put(number: int, text: str) -> PutOp:
    return PutOp(("users", f"u{number % USERS}"), str(number), {"text": text, "n": number})


def resident() -> int:
    """Bytes of memory this process holds (Linux)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def tell(answer: object) -> None:
    print(json.dumps(answer), flush=True)


class Child:
    """The process of one store."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.loaded: dict[str, float] = self.answer()
        self.times: dict[str, list[float]] = {operation: [] for operation in OPERATIONS}

    def ask(self, operation: str, number: int) -> None:
        stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # it is a pipe
        stdin.write(json.dumps([operation, number]).encode() + b"\n")
        stdin.flush()
        self.times[operation] += self.answer()

    def answer(self) -> Any:
        stdout: IO[bytes] = self._process.stdout  # type: ignore[assignment]  # it is a pipe
        return json.loads(stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@contextlib.contextmanager
def children(count: int) -> Iterator[list[Child]]:
    names = [name for name in STORES if name != "AsyncSqliteStore" or find_spec("langgraph.store.sqlite")]
    if "AsyncSqliteStore" not in names:
        print("AsyncSqliteStore is not installed: pip install langgraph-checkpoint-sqlite")
    elif not hasattr(sqlite3.Connection, "enable_load_extension"):
        print("this Python cannot load SQLite extensions, so AsyncSqliteStore searches without meaning")
    running = [Child(name, count) for name in names]
    try:
        yield running
    finally:
        for child in running:
            child.end()


def main(counts: list[int], operations: list[str]) -> None:
    for count in counts:
        with children(count) as stores:
            for operation in operations:
                for number in range(ROUNDS):
                    for child in stores:
                        child.ask(operation, number)
        print(f"{count} items")
        for child in stores:
            figures = [f"{operation} {percentiles(child.times[operation])[0]:.3f} ms" for operation in operations]
            loaded = f"{child.loaded['items/s']:.0f} items/s, {child.loaded['MB']:.0f} MB"
            print(f"  {child.name:17} {', '.join(figures)}, loaded at {loaded}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(sys.argv[2], int(sys.argv[3])))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("items", type=int, nargs="*", default=[10_000, 50_000])
        parser.add_argument("--only", nargs="+", choices=OPERATIONS, default=OPERATIONS)
        given = parser.parse_args()
        main(given.items, given.only)
