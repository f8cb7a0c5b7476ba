"""One owner of many records: exact dense search beside one product of numpy, lexical search beside FTS5.

    python tests/benchmarks/large.py [COUNT]

The product of a float32 matrix with a vector is the least that an exact search of unrounded vectors can cost. Both
numbers of threads are as numpy chooses. FTS5 holds the same analysed terms and answers an OR of the question's terms by
its own `bm25()`. Overlap is of the lexical part of our scores (other rules reorder the hits, on purpose) with BM25
written down plainly here, over all records and all terms. Ours includes thread hops and hydrated records; rounds are
interleaved, figures are medians.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from common import RememberedVectors, drafts, percentiles, questions
from memory_core import BoundMemory, Memory
from memory_core.models import MemoryRecord
from memory_core.retrieval import dense
from memory_core.retrieval.analysis import query_terms
from memory_core.retrieval.bm25 import K1, B
from memory_core.retrieval.features import terms_of_record

ROUNDS, ASKED = 5, 20
PAUSE = 0.5
"""Seconds after products of numpy, whose threads keep their cores busy for a while waiting for more."""


async def fill(handle: BoundMemory, count: int) -> list[MemoryRecord]:
    """The records, in order."""
    texts = drafts(count, 3)
    stored: list[MemoryRecord] = []
    for start in range(0, count, 1_000):
        stored += [record for record in await handle.add_many(texts[start : start + 1_000]) if record]
    return stored


async def time_ours(handle: BoundMemory, mode: str, asked: list[str]) -> list[float]:
    seconds: list[float] = []
    for question in asked:
        start = time.perf_counter()
        await handle.search(question, mode=mode, floor=False)  # type: ignore[arg-type]
        seconds.append(time.perf_counter() - start)
    return seconds


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


async def measure_dense(handle: BoundMemory, records: list[MemoryRecord], vectors: RememberedVectors) -> None:
    matrix = np.stack([vectors.vector(record.text) for record in records])
    asked = questions(ASKED, 1)
    await handle.search(asked[0], mode="vector", floor=False)
    ours: list[float] = []
    floor: list[float] = []
    shared = 0
    for _ in range(ROUNDS):
        floor += [timed(partial(np.matmul, matrix, vectors.vector(question))) for question in asked]
        await asyncio.sleep(PAUSE)
        ours += await time_ours(handle, "vector", asked)
    for question in asked:
        best = np.argsort(-(matrix @ vectors.vector(question)))[:10]
        hits = await handle.search(question, mode="vector", floor=False)
        shared += len({records[row].id for row in best} & {hit.record.id for hit in hits})
    (p50, _), (floor50, _) = percentiles(ours), percentiles(floor)
    kind = "int8" if dense._has_numkong() else "float32"
    print(f"dense, {len(records)} records, {kind}: p50 {p50:.2f} ms, one product {floor50:.2f} ms, ", end="")
    print(f"ratio {p50 / floor50:.2f}, recall@10 {shared / 10 / len(asked):.3f}", flush=True)


async def measure_lexical(handle: BoundMemory, records: list[MemoryRecord]) -> None:
    terms = [" ".join(terms_of_record(record)) for record in records]
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE VIRTUAL TABLE fts USING fts5 (terms)")
        db.executemany("INSERT INTO fts (rowid, terms) VALUES (?, ?)", enumerate(terms))
    db.execute("INSERT INTO fts (fts) VALUES ('optimize')")
    asked = questions(ASKED, 2)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        for question in asked:
            wanted = " OR ".join(f'"{term}"' for term in query_terms(question))
            theirs.append(timed(partial(_fetch, db, wanted)))
            ours += await time_ours(handle, "lexical", [question])
    (p50, p95), (fts50, fts95) = percentiles(ours), percentiles(theirs)
    print(f"lexical, {len(records)} records: p50 {p50:.2f} p95 {p95:.2f} ms, ", end="")
    print(f"FTS5 p50 {fts50:.2f} p95 {fts95:.2f} ms, ", end="")
    print(f"ratio {p50 / fts50:.2f}, overlap@10 {await overlap(handle, records, terms, asked):.3f}", flush=True)


def _fetch(db: sqlite3.Connection, wanted: str) -> object:
    return db.execute("SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT 10", (wanted,)).fetchall()


async def overlap(handle: BoundMemory, records: list[MemoryRecord], terms: list[str], asked: list[str]) -> float:
    """How many of the ten best by plain BM25 are the ten best by the lexical part of our scores."""
    counts = [Counter(text.split()) for text in terms]
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths)
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for row, count in enumerate(counts):
        for term in count:
            holding[term].append(row)
    shared = 0
    for question in asked:
        scores = np.zeros(len(records))
        for term in query_terms(question):
            rows = holding[term]
            idf = math.log(1 + (len(records) - len(rows) + 0.5) / (len(rows) + 0.5))
            for row in rows:
                times = counts[row][term]
                scores[row] += idf * times * (K1 + 1) / (times + K1 * (1 - B + B * lengths[row] / average))
        best = {records[row].id for row in np.argsort(-scores, kind="stable")[:10]}
        hits = await handle.search(question, mode="lexical", floor=False, limit=100, explain=True)
        hits.sort(key=lambda hit: -(hit.components or {})["bm25"].raw)
        shared += len(best & {hit.record.id for hit in hits[:10]})
    return shared / 10 / len(asked)


async def main(count: int) -> None:
    vectors = RememberedVectors()
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "large.db", embedder=vectors) as memory:
            handle = memory.bind(app="bench", user="ann")
            records = await fill(handle, count)
            await measure_lexical(handle, records)
            await measure_dense(handle, records, vectors)
        if dense._has_numkong():
            with patch.object(dense, "_has_numkong", return_value=False):
                async with Memory(Path(folder) / "large.db", embedder=vectors) as memory:
                    await measure_dense(memory.bind(app="bench", user="ann"), records, vectors)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
