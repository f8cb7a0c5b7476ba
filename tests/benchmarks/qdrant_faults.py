"""Adds to Qdrant's own engine over HTTP while every tenth request fails, and what is stored in the end.

    python -m tests.benchmarks.qdrant_faults [--records 10000] [--attempts 6]

A request fails in one of five ways, in turn: 503, 429, the connection cut before the work, after it, or half-way
through. With `--attempts 1` nothing is tried again, and the caller hears of every fault. Exits 1 if an acknowledged
record is missing, there twice or half indexed, or if a record is there that was neither acknowledged nor refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import count, cycle

from memory_core import Draft, Memory, MemoryRecord, StorageError, Where, run_sync
from memory_core.storage.qdrant.settings import Patience, Server
from memory_core.storage.qdrant.store import QdrantStore
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.engine import Call, Fault
from tests.storage.qdrant.loopback import Loopback

FAULTS = (Fault.UNAVAILABLE, Fault.BUSY, Fault.RESET, Fault.LOST, Fault.HALF)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--attempts", type=int, default=6)
    given = parser.parse_args()
    engine = EdgeEngine()
    engine.keep_calls = False
    with Loopback(engine) as server:
        try:
            return run(server, given.records, given.attempts)
        finally:
            engine.close()


def run(server: Loopback, records: int, attempts: int) -> int:
    patience = Patience(attempts=attempts, first_pause_seconds=0.001, longest_pause_seconds=0.01)
    faults, requests, hit = cycle(FAULTS), count(1), list[Fault]()

    def decide(_: Call) -> Fault | None:
        if next(requests) % 10:
            return None
        hit.append(next(faults))
        return hit[-1]

    acknowledged: dict[str, MemoryRecord] = {}
    refused: set[str] = set()
    started = time.monotonic()
    with opened(server, patience) as memory:
        server.fail(decide)
        for n in range(records):
            draft = Draft(f"word{n} of many", id=f"id {n}", session=f"s{n % 7}" if n % 2 else None)
            try:
                record = run_sync(memory.bind(user="ann").add, draft)
                acknowledged[record.id] = record
            except StorageError:
                refused.add(f"id {n}")
        server.fail()
    seconds = time.monotonic() - started
    with opened(server, patience) as memory:
        ann = memory.bind(user="ann")
        while run_sync(ann.stats).vectors_pending:
            time.sleep(0.1)
        stored = every_record(memory)
        unfound = [
            r.id for r in list(acknowledged.values())[:: max(len(acknowledged) // 200, 1)] if not found(memory, r)
        ]
    there = {record.id: record for record in stored}
    wrong = [id_ for id_, record in acknowledged.items() if there.get(id_) != record]
    unheard = there.keys() - acknowledged.keys() - refused
    print(f"{records} adds in {seconds:.0f} s with {len(hit)} faults")
    print(f"{len(acknowledged)} acknowledged, {len(refused)} refused with an error")
    print(f"acknowledged and missing or different: {len(wrong)}; there twice: {len(stored) - len(there)}")
    print(f"not found by their word, of 200: {len(unfound)}")
    print(f"refused and there after all: {len(there.keys() & refused)}; there and never answered for: {len(unheard)}")
    return bool(wrong or unheard or unfound or len(stored) != len(there))


def opened(server: Loopback, patience: Patience) -> Memory:
    return Memory(QdrantStore(Server(url=server.url), embedder=WordEmbedder(), patience=patience, collection="faults"))


def every_record(memory: Memory) -> list[MemoryRecord]:
    stored: list[MemoryRecord] = []
    cursor: str | None = None
    while True:
        page = run_sync(memory.bind(user="ann").list, where=Where(), order="oldest", limit=1_000, cursor=cursor)
        stored += page.records
        cursor = page.cursor
        if cursor is None:
            return stored


def found(memory: Memory, record: MemoryRecord) -> bool:
    hits = run_sync(memory.bind(user="ann").search, record.text.split()[0], mode="lexical", limit=3)
    return any(hit.record == record for hit in hits)


if __name__ == "__main__":
    sys.exit(main())
