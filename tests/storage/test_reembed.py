"""A store turns to another embedder while it is used, killed and shared."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import (
    BoundMemory,
    Draft,
    EmbeddingError,
    FingerprintError,
    Memory,
    Patch,
    run_sync,
)
from memory_core.storage.sqlite.pending_vectors import CHUNKS_AT_ONCE
from tests.storage.consistency import assert_consistent, owed
from tests.storage.embedders import MoodyEmbedder, WordEmbedder

SCRIPT = Path(__file__).with_name("reembedding_process.py")
COUNT = 3 * CHUNKS_AT_ONCE + 7
PATIENCE_SECONDS = 300


def drafts(count: int) -> list[Draft]:
    return [
        Draft(
            f"turn number {number} about topic{number % 50}",
            session=f"s{number % 5}",
            author=("Ann", "Bob")[number % 2],
            occurred_at=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
        )
        for number in range(count)
    ]


class SteppingEmbedder(WordEmbedder):
    """Works on a batch of documents only when it is let."""

    def __init__(self, name: str = "new") -> None:
        super().__init__(name, 32)
        self.let = threading.Semaphore(0)
        self.begun = 0
        self.closed = False

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.begun += 1
        await asyncio.to_thread(self.let.acquire)
        return await super().embed_documents(texts)

    async def stops_after(self, batches: int) -> None:
        """Let it work on so many batches, and wait until it stands before the next: so many are kept."""
        self.let.release(batches)
        while self.begun <= batches:  # noqa: ASYNC110  (it works on another loop)
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        self.closed = True


class ClosableEmbedder(WordEmbedder):
    """Fails once it is closed, as one that has let go of its model may."""

    closed = False

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        await asyncio.sleep(0)
        if self.closed:
            raise EmbeddingError("closed")
        return await super().embed_query(text)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store of a few batches."""
    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        run_sync(memory.bind(user="ann").add_many, drafts(COUNT))
        run_sync(memory.bind(user="bob").add, "Bob likes cake")
    return path


async def paid(handle: BoundMemory) -> None:
    """Wait until no vector is owed."""
    while (await handle.stats()).vectors_pending:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def test_a_memory_goes_on_with_the_new_embedder(path: Path) -> None:
    old, new = ClosableEmbedder(), WordEmbedder("new", 32)
    async with Memory(path, embedder=old) as memory:
        handle = memory.bind(user="ann")
        before = await handle.search("turn number 77 about topic27", mode="vector")
        assert await memory.reembed(new) == COUNT + 1
        after = await handle.search("turn number 77 about topic27", mode="vector")
        assert len(before) == len(after)
        assert after[0].similarity is not None
        await handle.add("Ann drinks jasmine tea")
        assert (await handle.search("Ann drinks jasmine tea"))[0].similarity is not None
        assert (await memory.bind(user="bob").search("Bob likes cake", mode="vector"))[
            0
        ].record.text == "Bob likes cake"
    assert old.closed
    assert owed(path) == 0
    await asyncio.to_thread(assert_consistent, path, new)
    async with Memory(path, embedder=new) as memory:
        assert (await memory.bind(user="ann").search("Ann drinks jasmine tea", mode="vector"))[0].record.text.endswith(
            "tea"
        )


async def test_the_refusal_of_another_embedder_names_the_way_out(path: Path) -> None:
    with pytest.raises(FingerprintError, match=r"embedder=None and call `await memory\.reembed\(embedder\)`"):
        await Memory(path, embedder=WordEmbedder("new", 32)).open()
    async with Memory(path, embedder=None) as memory:
        await memory.reembed(WordEmbedder("new", 32))
        assert (await memory.bind(user="ann").search("turn number 77 about topic27", mode="vector"))[
            0
        ].similarity is not None
    async with Memory(path, embedder=WordEmbedder("new", 32)):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("writes", [15, pytest.param(60, marks=pytest.mark.torture)])
async def test_no_search_fails_and_no_write_is_lost_meanwhile(path: Path, writes: int) -> None:
    new = SteppingEmbedder()
    async with Memory(path, embedder=ClosableEmbedder()) as memory:
        handle = memory.bind(user="ann")
        known = (await handle.list(limit=COUNT)).records
        work = asyncio.create_task(memory.reembed(new))
        searches = 0

        async def search() -> None:
            nonlocal searches
            while not (work.done() and writing.done()):
                number = random.randrange(COUNT)
                try:
                    assert await handle.search(
                        f"turn number {number} about topic{number % 50}", mode=("vector", "hybrid")[number % 2]
                    )
                finally:
                    searches += 1
                    new.let.release()

        async def write() -> None:
            for number in range(writes):
                record = known[number * 11]
                await handle.add(
                    Draft(f"new turn {number}", session="s1", author="Ann", occurred_at=record.occurred_at)
                )
                await handle.update(record.id, Patch(text=f"changed {number}"))
                await handle.delete(known[number * 11 + 1].id)

        writing = asyncio.create_task(write())
        await asyncio.gather(work, writing, *(search() for _ in range(4)))
        for _ in range(COUNT):
            new.let.release()  # for what is owed
        await paid(handle)
        texts = {record.text for record in (await handle.list(limit=2 * COUNT)).records}
        assert {f"new turn {number}" for number in range(writes)} | {
            f"changed {number}" for number in range(writes)
        } <= texts
    assert searches > 3
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("new", 32))


OTHER = """
import sys
sys.path.insert(0, sys.argv[2])
from memory_core import FingerprintError, Memory, run_sync
from tests.storage.embedders import WordEmbedder
with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:
    ann = memory.bind(user="ann")
    print(len(run_sync(ann.search, "topic27")) > 0, flush=True)
    input()
    for mode in ("hybrid", "vector"):
        try:
            run_sync(ann.search, "topic27", mode=mode)
        except FingerprintError as error:
            print("were made by new 1" in str(error))
    run_sync(ann.add, "Ann drinks jasmine tea")
    print(run_sync(ann.list, limit=1).records[0].text)
"""


@pytest.mark.process
async def test_another_process_with_the_old_embedder_is_refused_and_loses_nothing(path: Path) -> None:
    root = str(Path(__file__).parents[2])
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER, path, root, stdin=pipe, stdout=pipe)
    assert other.stdout is not None
    assert await other.stdout.readline() == b"True\n"
    async with Memory(path, embedder=WordEmbedder()) as memory:
        ours = memory.bind(user="ann")
        await memory.reembed(WordEmbedder("new", 32))
        said, _ = await other.communicate(b"\n")
        assert said == b"True\nTrue\nAnn drinks jasmine tea\n"
        assert (await ours.search("jasmine", mode="lexical"))[0].record.text == "Ann drinks jasmine tea"
        await ours.add("wakes the backlog")
        await paid(ours)
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("new", 32))


async def test_other_memories_of_the_process_go_on_with_the_new_embedder(path: Path) -> None:
    async with Memory(path, embedder=WordEmbedder()) as other, Memory(path, embedder=WordEmbedder()) as memory:
        theirs = other.bind(user="ann")
        await theirs.search("topic27")
        await memory.reembed(WordEmbedder("new", 32))
        await memory.close()
        assert (await theirs.search("turn number 77 about topic27", mode="vector"))[0].similarity is not None
        await theirs.add("Ann drinks jasmine tea")
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("new", 32))


async def test_what_a_failing_embedder_has_done_is_not_done_again(path: Path) -> None:
    new = MoodyEmbedder()
    new.fingerprint = WordEmbedder("new", 32).fingerprint
    async with Memory(path, embedder=WordEmbedder()) as memory:
        handle = memory.bind(user="ann")
        with pytest.raises(EmbeddingError, match="out for lunch"):
            await memory.reembed(new)
        half = SteppingEmbedder()
        work = asyncio.create_task(memory.reembed(half))
        await half.stops_after(2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        half.let.release()
        assert (await handle.search("turn number 77 about topic27", mode="vector"))[0].similarity is not None
        new.failing = False
        assert await memory.reembed(new) == COUNT + 1 - 2 * CHUNKS_AT_ONCE
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("new", 32))


async def test_the_last_who_begins_has_the_file(path: Path) -> None:
    first = SteppingEmbedder("first")
    async with Memory(path, embedder=WordEmbedder()) as memory:
        work = asyncio.create_task(memory.reembed(first))
        await first.stops_after(1)
        second = SteppingEmbedder("second")
        other = asyncio.create_task(memory.reembed(second))
        await second.stops_after(1)
        first.let.release(99)
        with pytest.raises(FingerprintError, match=r"for first 1 was stopped: .* re-embedded for second now"):
            await work
        second.let.release(99)
        assert await other == COUNT + 1
        assert not first.closed
    assert second.closed
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("second", 32))


async def test_two_who_work_for_the_same_embedder_both_succeed(path: Path) -> None:
    async with Memory(path, embedder=WordEmbedder()) as one, Memory(path, embedder=WordEmbedder()) as two:
        await asyncio.gather(one.reembed(WordEmbedder("new", 32)), two.reembed(WordEmbedder("new", 32)))
        for memory in (one, two):
            assert (await memory.bind(user="ann").search("turn number 77 about topic27", mode="vector"))[
                0
            ].similarity is not None
        assert await one.reembed(WordEmbedder("new", 32)) == 0
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("new", 32))


async def test_what_is_erased_meanwhile_leaves_nothing_behind(path: Path) -> None:
    new = SteppingEmbedder()
    async with Memory(path, embedder=WordEmbedder()) as memory:
        work = asyncio.create_task(memory.reembed(new))
        await new.stops_after(2)
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM renewal").fetchone() == (2 * CHUNKS_AT_ONCE,)
            await memory.bind(user="ann").erase()
            assert db.execute("SELECT count(*) FROM renewal").fetchone() == (0,)
        new.let.release(99)
        await work
        assert (await memory.bind(user="bob").search("Bob likes cake", mode="vector"))[
            0
        ].record.text == "Bob likes cake"
    await asyncio.to_thread(assert_consistent, path, WordEmbedder("new", 32))


async def test_a_store_in_memory_and_an_empty_one_turn_too(tmp_path: Path) -> None:
    for store in (":memory:", tmp_path / "empty.db"):
        async with Memory(store, embedder=WordEmbedder()) as memory:
            assert await memory.reembed(WordEmbedder("new", 32)) == 0
            handle = memory.bind(user="ann")
            await handle.add("Ann drinks tea")
            assert await memory.reembed(WordEmbedder("newer", 16)) == 1
            assert (await handle.search("tea"))[0].similarity is not None


async def test_a_caller_who_goes_away_leaves_a_memory_that_works(path: Path) -> None:
    async with Memory(path, embedder=WordEmbedder()) as memory:
        for pause in range(0, 60, 3):
            work = asyncio.create_task(memory.reembed(WordEmbedder(f"new{pause}", 32)))
            await asyncio.sleep(pause / 1000)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            hits = await memory.bind(user="ann").search("turn number 77 about topic27", mode="vector")
            assert hits[0].similarity is not None


@pytest.mark.process
def test_a_killed_process_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, log = tmp_path / "memory.db", tmp_path / "log"
    count = 12 * CHUNKS_AT_ONCE
    with Memory(path, embedder=WordEmbedder()) as memory:
        run_sync(memory.bind(user="ann").add_many, drafts(count))
    command = [sys.executable, str(SCRIPT), str(path), str(log)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    lives = (2, 3, 4)
    for life, most in enumerate(lives, 1):
        process = subprocess.Popen([*command, str(most)])
        while len(lines(log)) < sum(lives[:life]):
            assert time.monotonic() < deadline, "it does not get on"
            time.sleep(0.001)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        with Memory(path, embedder=WordEmbedder()) as memory:
            assert run_sync(memory.bind(user="ann").search, "turn number 77 about topic27", mode="vector")[0].similarity
    assert_consistent(path, WordEmbedder())
    subprocess.run([*command, str(count)], check=True, timeout=PATIENCE_SECONDS)
    assert count <= sum(map(int, lines(log))) <= count + len(lives) * CHUNKS_AT_ONCE
    assert_consistent(path, WordEmbedder("new", 32))


def lines(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []
