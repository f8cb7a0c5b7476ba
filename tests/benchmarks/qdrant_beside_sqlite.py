"""Qdrant beside a SQLite file: recall on the development corpora, durable adds, and searches of one owner among others.

    python -m tests.benchmarks.qdrant_beside_sqlite recall
    python -m tests.benchmarks.qdrant_beside_sqlite adds
    python -m tests.benchmarks.qdrant_beside_sqlite search [--among 100000] [--collection NAME]

`QDRANT_URL` names the server; without it, the engine of the server in process answers behind a loopback server, whose
speed says nothing about a server's. `recall` asks all questions of `tests/corpora` with `search(limit=25)` and prints
the share of the evidence among the first ten. `adds` adds with 32 concurrent writers. `search` fills up with other
owners' points, copies of 512 records with random vectors that are sent as fast as the server takes them, and searches
an owner of 1,000. Bytes are those of a server's answers as sent. With `--collection` the points stay, and the next call
adds only what is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
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
from typing import Final

import httpx
import numpy as np

from memory_core import Draft, Memory, MiniLmEmbedder, run_sync
from memory_core.storage.qdrant.codec import WORDS
from memory_core.storage.qdrant.settings import Patience, Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.transfer.copying import copy_memory
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
PARALLEL: Final = 2
FIRST_OTHER: Final = "another-owner"
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


def store(url: str, name: str) -> QdrantStore:
    server = Server(url=url, timeout_seconds=120)
    return QdrantStore(server, embedder=MiniLmEmbedder(), collection=name, patience=PATIENCE)


def recall(url: str) -> None:
    for corpus in CORPORA:
        people = owners(corpus)
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory(f"{folder}/m.db") as file,
            Memory(store(url, f"{corpus}-{uuid.uuid4().hex[:6]}")) as server,
        ):
            for person in people:
                run_sync(file.bind(user=person.name).add_many, list(person.records))
            run_sync(copy_memory, file, server)
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


def adds(url: str) -> None:
    texts, _ = random_texts()
    name = f"adds-{uuid.uuid4().hex[:6]}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "m.db") as file,
        Memory(store(url, name)) as one,
    ):
        for kind, memory in (("SQLite", file), ("Qdrant", one)):
            print(f"{kind}: {adds_a_second(memory, texts):.0f} durable adds a second, {WRITERS} writers", flush=True)


def search(url: str, among: int, collection: str | None) -> None:
    texts, words = random_texts()
    name = collection or f"search-{uuid.uuid4().hex[:6]}"
    with (
        Counter(url) as counter,
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "m.db") as file,
        Memory(store(counter.url, name)) as server,
    ):
        drafts = [Draft(text, session=f"s{n // 40}", role="user") for n, text in enumerate(texts[:OWNED])]
        for memory in (file, server):
            if not run_sync(memory.bind(user="ann").stats).records:
                run_sync(memory.bind(user="ann").add_many, drafts)
        if among:
            fill(server, url, name, among, words)
        for kind, memory in (("SQLite", file), ("Qdrant", server)):
            report(kind, memory, texts, counter if kind == "Qdrant" else None)


def random_texts() -> tuple[list[str], list[str]]:
    """Texts, and the words they are made of."""
    dice = Random(3)
    words = ["".join(dice.choices("abcdefghiklmnoprstuvw", k=dice.randint(3, 9))) for _ in range(8_000)]
    return [" ".join(dice.choices(words, k=dice.randint(8, 30))) for _ in range(max(ADDS, OWNED))], words


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


def fill(memory: Memory, url: str, name: str, among: int, words: list[str]) -> None:
    """Add points of other owners until the collection has `among`."""
    dice, noise = Random(4), np.random.default_rng(4)
    drafts = [Draft(" ".join(dice.choices(words, k=15)), source_key=str(n)) for n in range(BATCH)]
    run_sync(memory.bind(user=FIRST_OTHER).add_many, drafts)
    rows = noise.standard_normal((20_000, 384))
    vectors = [json.dumps([row]) for row in (rows / np.linalg.norm(rows, axis=1)[:, None]).round(4).tolist()]

    async def work() -> tuple[int, float]:
        async with httpx.AsyncClient(base_url=f"{url}/collections/{name}/points", timeout=600) as client:
            there = (await client.post("/count", json={"exact": True})).json()["result"]["count"]
            owned = {"must": [{"key": "_owner", "match": {"value": f"0:7:default{FIRST_OTHER}"}}]}
            asked = {"filter": owned, "limit": BATCH, "with_payload": True, "with_vector": [WORDS]}
            made = (await client.post("/scroll", json=asked)).json()["result"]["points"]
            (dense,) = {key for key in await _vectors_of(client) if not key.endswith("-first")}
            templates = [json.dumps({**point, "id": "@", "vector": {**point["vector"], dense: "@@"}}) for point in made]
            started, sent = time.perf_counter(), 0
            while there + sent < among:
                some = [_copies(templates, vectors, dice, uuid.uuid4().hex) for _ in range(PARALLEL)]
                answers = await asyncio.gather(*(client.put("?wait=true", content=body) for body in some))
                for answer in answers:
                    answer.raise_for_status()
                sent += PARALLEL * len(templates)
            return there + sent, sent / (time.perf_counter() - started)

    count, rate = asyncio.run(work())
    print(f"{count} points of {count // BATCH} owners in the collection; {rate:.0f} a second were loaded", flush=True)


async def _vectors_of(client: httpx.AsyncClient) -> list[str]:
    found = (await client.get(str(client.base_url).removesuffix("/points/"))).json()
    return list(found["result"]["config"]["params"]["vectors"])


def _copies(templates: list[str], vectors: list[str], dice: Random, owner: str) -> str:
    """The body of a request that writes the points of another owner."""
    points: list[str] = []
    for template in templates:
        record = json.loads(template)["payload"]["id"]
        text = template.replace('"@@"', dice.choice(vectors)).replace('"@"', f'"{uuid.uuid4()}"')
        points.append(text.replace(FIRST_OTHER, owner).replace(record, str(uuid.uuid4())))
    return f'{{"points": [{", ".join(points)}]}}'


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
    parser.add_argument("what", choices=("recall", "adds", "search"))
    parser.add_argument("--among", type=int, default=100_000)
    parser.add_argument("--collection", help="a name, to keep the points for another call")
    given = parser.parse_args()
    with server_url() as url:
        if given.what == "recall":
            recall(url)
        elif given.what == "adds":
            adds(url)
        else:
            search(url, given.among, given.collection)
    return 0


if __name__ == "__main__":
    sys.exit(main())
