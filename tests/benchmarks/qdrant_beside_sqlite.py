"""Qdrant beside a SQLite file: recall on the development corpora, durable adds, and searches of one owner among others.

    python -m tests.benchmarks.qdrant_beside_sqlite recall
    python -m tests.benchmarks.qdrant_beside_sqlite speed [--among 100000] [--grpc]

`QDRANT_URL` names the server; without it, the engine of the server in process answers behind a loopback server, whose
speed says nothing about a server's. `recall` asks all questions of `tests/corpora` with `search(limit=25)` and prints
the share of the evidence among the first ten. `speed` adds with 32 concurrent writers, then fills up with other owners'
records, whose vectors are random, and searches an owner of 1,000. Bytes are those of a server's answers as sent.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from memory_core import Draft, Memory, MiniLmEmbedder, Scope, run_sync
from memory_core.loop import on_core
from memory_core.models import utc_now
from memory_core.storage.qdrant.settings import Patience, Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.storage.shared.transfer import Carried
from memory_core.transfer.migrate import migrate
from tests.corpora.loading import CORPORA, Owner, owners
from tests.storage.qdrant.counting import Counter
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import Loopback

FIRST: Final = 10
ASKED: Final = 25
WRITERS: Final = 32
ADDS: Final = 1_024
OWNED: Final = 1_000
SEARCHES: Final = 200
BATCH: Final = 512
PATIENCE: Final = Patience(deadline_seconds=600)


@contextmanager
def server_url() -> Iterator[str]:
    """The address of the server of the environment, or of a loopback server."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    engine = EdgeEngine()
    engine.keep_calls = False
    with Loopback(engine) as loopback:
        yield loopback.url
    engine.close()


def store(url: str, name: str, *, grpc: bool = False) -> QdrantStore:
    server = Server(url=url, timeout_seconds=120, prefer_grpc=grpc)
    collection = f"{name}-{uuid.uuid4().hex[:6]}"
    return QdrantStore(server, embedder=MiniLmEmbedder(), collection=collection, patience=PATIENCE)


def recall(url: str) -> None:
    for corpus in CORPORA:
        people = owners(corpus)
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory(f"{folder}/m.db") as file,
            Memory(store(url, corpus)) as server,
        ):
            for person in people:
                run_sync(file.bind(user=person.name).add_many, list(person.records))
            run_sync(migrate, file, server)
            both = [found(memory, people) for memory in (file, server)]
        print(f"{corpus:16} recall@{FIRST}: SQLite {100 * both[0]:.1f}, Qdrant {100 * both[1]:.1f}", flush=True)


def found(memory: Memory, people: list[Owner]) -> float:
    shares: list[float] = []
    for person in people:
        handle = memory.bind(user=person.name)
        for question in person.questions:
            hits = run_sync(handle.search, question.text, limit=ASKED)[:FIRST]
            keys = {hit.record.source_key for hit in hits}
            shares.append(len(question.evidence & keys) / len(question.evidence))
    return statistics.mean(shares)


def speed(url: str, among: int, *, grpc: bool) -> None:
    dice = Random(3)
    words = ["".join(dice.choices("abcdefghiklmnoprstuvw", k=dice.randint(3, 9))) for _ in range(8_000)]
    texts = [" ".join(dice.choices(words, k=dice.randint(8, 30))) for _ in range(max(ADDS, OWNED))]
    with (
        Counter(url) as counter,
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "m.db") as file,
        Memory(store(url if grpc else counter.url, "speed", grpc=grpc)) as server,
    ):
        for name, memory in (("SQLite", file), ("Qdrant", server)):
            print(f"{name}: {adds_a_second(memory, texts):.0f} durable adds a second, {WRITERS} writers", flush=True)
            drafts = [Draft(text, session=f"s{n // 40}", role="user") for n, text in enumerate(texts[:OWNED])]
            run_sync(memory.bind(user="ann").add_many, drafts)
        print(f"{fill(server, among, words):.0f} points a second restored by one process", flush=True)
        for name, memory in (("SQLite", file), ("Qdrant", server)):
            report(name, memory, texts, counter if name == "Qdrant" and not grpc else None)


def adds_a_second(memory: Memory, texts: list[str]) -> float:
    handle = memory.bind(user="writers")

    async def write(mine: list[str]) -> None:
        for text in mine:
            await handle.add(text)

    async def work() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(write(texts[n:ADDS:WRITERS]) for n in range(WRITERS)))
        return ADDS / (time.perf_counter() - started)

    return run_sync(work)


def fill(memory: Memory, among: int, words: list[str]) -> float:
    """Restore records of other owners, with random vectors; returns how many a second."""
    dice, noise, now = Random(4), np.random.default_rng(4), utc_now()
    from memory_core.drafts import complete

    async def work() -> float:
        store: Any = await memory.ready()
        port, started = store.port(), time.perf_counter()
        for start in range(0, among, BATCH):
            scope = Scope("default", f"other{start // BATCH}")
            items: list[Carried] = []
            for n in range(min(BATCH, among - start)):
                record = complete(Draft(" ".join(dice.choices(words, k=15))), scope, now)
                vector = noise.standard_normal(384)
                items.append(Carried(record, n, (), ((vector / np.linalg.norm(vector)).astype(np.float16).tobytes(),)))
            await port.restore(scope, items)
        return among / (time.perf_counter() - started) if among else 0.0

    return run_sync(lambda: on_core(work))


def report(name: str, memory: Memory, texts: list[str], counter: Counter | None) -> None:
    handle, dice = memory.bind(user="ann"), Random(5)
    questions = [" ".join(dice.choice(texts[:OWNED]).split()[:6]) for _ in range(SEARCHES)]
    run_sync(handle.search, questions[0])
    received, requests = (counter.received, counter.requests) if counter else (0, 0)
    took: list[float] = []
    for question in questions:
        started = time.perf_counter()
        run_sync(handle.search, question)
        took.append(1e3 * (time.perf_counter() - started))
    took.sort()
    p50, p95 = took[SEARCHES // 2], took[SEARCHES * 19 // 20]
    said = f"{name}: search of an owner of {OWNED}: p50 {p50:.1f} ms, p95 {p95:.1f} ms"
    if counter:
        said += f", {(counter.received - received) / SEARCHES / 1e3:.0f} KB down"
        said += f" in {(counter.requests - requests) / SEARCHES:.1f} requests a search"
    print(said, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("recall", "speed"))
    parser.add_argument("--among", type=int, default=100_000)
    parser.add_argument("--grpc", action="store_true", help="with QDRANT_URL, on port 6334")
    given = parser.parse_args()
    with server_url() as url:
        if given.what == "recall":
            recall(url)
        else:
            speed(url, given.among, grpc=given.grpc)
    return 0


if __name__ == "__main__":
    sys.exit(main())
