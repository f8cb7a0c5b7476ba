"""Erasure, judged by the bytes of the files."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import BoundMemory, Draft, Memory, Patch, Where, run_sync
from memory_core.adapting import scrubbed
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import Ticks
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import MoodyEmbedder, WordEmbedder

pytestmark = pytest.mark.uncovered

SECRET = "zq7x"
"""Starts every word that must not be found in any file afterwards. No word of the rest has it."""


def secret_draft(number: int, rng: random.Random) -> Draft:
    words = [
        f"{SECRET}text{rng.randrange(10**6)}" if rng.random() < 0.3 else "filler" for _ in range(rng.randrange(400))
    ]
    return Draft(
        f"{SECRET}begin{number} {' '.join(words)} {SECRET}end{number}",
        kind=f"{SECRET}kind",
        author=f"{SECRET}author{number % 3}",
        data={f"{SECRET}key": f"{SECRET}value{number}"},
        tags=(f"{SECRET}tag{number}",),
        emotion=f"{SECRET}emotion",
        source_key=f"{SECRET}source{number}",
        id=f"{SECRET}id{number}",
        agent=f"{SECRET}agent",
        session=f"{SECRET}session{number % 7}",
        collection=f"{SECRET}collection",
        expires_at=Ticks().now + timedelta(hours=1) if number % 9 == 0 else None,
    )


def plain_draft(number: int, rng: random.Random) -> Draft:
    return Draft(f"harmless number {number} {'filler ' * rng.randrange(400)}", session=f"s{number % 7}", author="Bob")


def fill(secret: BoundMemory, plain: BoundMemory, clock: Ticks, size: int = 300) -> None:
    """Write, change and delete in turns, so that pages split and rows move."""
    rng = random.Random(5)
    number = 0
    while number < size:
        count = rng.randrange(1, 30)
        run_sync(secret.add_many, [secret_draft(n, rng) for n in range(number, number + count)])
        run_sync(plain.add_many, [plain_draft(n, rng) for n in range(number, number + count)])
        number += count
    for n in range(0, number, 5):
        if n % 9:
            longer = f"{SECRET}changed{n} " * rng.randrange(1, 300)
            run_sync(secret.update, f"{SECRET}id{n}", Patch(text=longer, author=f"{SECRET}author again"))
    for n in range(0, number, 7):
        run_sync(secret.delete, f"{SECRET}id{n}")
    clock.advance(hours=2)  # some expire


def traces(folder: Path) -> list[str]:
    """The places where the secret is still to be read: file and what stands there."""
    found: list[str] = []
    for path in folder.iterdir():
        # Reading an open database here would drop this process's locks on it.
        content = subprocess.run(["cat", path], check=True, stdout=subprocess.PIPE).stdout
        start = content.find(SECRET.encode())
        if start >= 0:
            count = content.count(SECRET.encode())
            found.append(f"{path.name}: {count} times, first {content[start - 20 : start + 60]!r} at {start}")
        assert SECRET not in path.name
    return found


@pytest.mark.parametrize("embedder", [None, WordEmbedder()], ids=["words", "vectors"])
def test_no_file_holds_anything_of_an_erased_owner(tmp_path: Path, embedder: WordEmbedder | None) -> None:
    path, clock = tmp_path / "memory.db", Ticks()
    with Memory(path, embedder=embedder, clock=clock) as memory:
        secret = memory.bind(app=f"{SECRET}app", user=f"{SECRET}user")
        plain = memory.bind(app="demo", user="bob")
        fill(secret, plain, clock)
        held = run_sync(plain.stats).records
        assert traces(tmp_path)
        receipt = run_sync(secret.erase)
        assert receipt.files_clean
        assert receipt.records >= 200
        assert receipt.sessions == 6  # of seven, one was deleted before
        assert traces(tmp_path) == [], "while the memory is open"
        assert run_sync(plain.stats).records == held
        assert len(run_sync(plain.search, "harmless", limit=1_000)) == held
        assert run_sync(secret.search, "filler") == []
        again = run_sync(secret.add_many, [Draft("back again", source_key=f"{SECRET}source{n}") for n in range(20)])
        assert again == [None] * 20
        assert run_sync(secret.erase).files_clean
    assert traces(tmp_path) == [], "after it was closed"
    assert_consistent(path, embedder)


def test_no_file_holds_anything_of_an_erased_session(tmp_path: Path) -> None:
    path, clock = tmp_path / "memory.db", Ticks()
    with Memory(path, embedder=WordEmbedder(), clock=clock) as memory:
        bob = memory.bind(app="demo", user="bob")
        secret, rest = bob.bind(session=f"{SECRET}session"), bob.bind(session="other")
        rng = random.Random(3)
        for start in range(0, 200, 10):
            drafts = [Draft(f"{SECRET}turn{n} {SECRET}word " + "filler " * rng.randrange(300)) for n in range(10)]
            run_sync(secret.add_many, drafts)
            run_sync(rest.add_many, [f"harmless number {n} {'filler ' * n}" for n in range(start, start + 10)])
        receipt = run_sync(secret.erase)
        assert (receipt.records, receipt.sessions, receipt.files_clean) == (200, 1, True)
        assert traces(tmp_path) == []
        assert len(run_sync(bob.search, "harmless", limit=1_000)) == 200
        assert run_sync(bob.stats).sessions == 1
    assert_consistent(path, WordEmbedder())


def test_deleted_and_changed_texts_are_gone_with_the_next_erasure(tmp_path: Path) -> None:
    """A record that was deleted long before is in no file either, nor is any text that it ever had."""
    path, clock = tmp_path / "memory.db", Ticks()
    with Memory(path, embedder=None, clock=clock) as memory:
        bob = memory.bind(user="bob")
        rng = random.Random(3)
        for n in range(150):
            run_sync(bob.add, Draft(f"{SECRET}{n} " * rng.randrange(1, 200), id=str(n)))
        for n in range(150):
            if n % 2:
                run_sync(bob.update, str(n), Patch(text="harmless"))
            run_sync(bob.delete_where, Where(ids=(str(n),)), forget=False)
        receipt = run_sync(bob.bind(session="none of these").erase)
        assert (receipt.records, receipt.files_clean) == (0, True)
        assert traces(tmp_path) == []
        assert run_sync(bob.stats).records == 0


def test_erasure_computes_no_vector(tmp_path: Path) -> None:
    """An erasure by one handle changes no vector of the turns that stay, so no embedder can hold it up."""
    path, embedder = tmp_path / "memory.db", MoodyEmbedder()
    embedder.failing = False
    with Memory(path, embedder=embedder) as memory:
        ann = memory.bind(user="ann")
        drafts = [Draft(f"{SECRET} plan", agent="spy", session="s"), Draft("yes on friday", session="s")]
        run_sync(ann.add_many, drafts)
        embedder.failing = True
        assert run_sync(ann.bind(agent="spy").erase).files_clean
        assert traces(tmp_path) == []
        assert run_sync(ann.stats).vectors_pending == 0


@pytest.mark.process
def test_a_reader_in_another_process_delays_the_last_step(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        bob = memory.bind(user="bob")
        run_sync(bob.add, f"{SECRET} text")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        receipt = run_sync(bob.erase)
        assert (receipt.records, receipt.files_clean) == (1, False)
        assert run_sync(bob.list).records == ()
        assert traces(tmp_path), "the reader may still look at it"
        reader.execute("COMMIT")
        receipt = run_sync(bob.erase)
        assert (receipt.records, receipt.files_clean) == (0, True)
        assert traces(tmp_path) == []


def test_erasing_and_adding_at_once_leaves_only_what_came_after(tmp_path: Path) -> None:
    """Waiting writes are committed together; what goes in and out in one commit leaves no trace either."""
    import asyncio

    async def churn(bob: BoundMemory) -> None:
        await asyncio.gather(
            *(bob.add(f"{SECRET}{n} tea") for n in range(20)),
            bob.erase(),
            *(bob.add(f"{SECRET}{n} again") for n in range(20)),
            bob.erase(),
        )

    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        bob = memory.bind(user="bob")
        for _ in range(5):
            run_sync(churn, bob)
        run_sync(bob.erase)
        assert traces(tmp_path) == []


class BusyEmbedder(WordEmbedder):
    """Does not get done with the texts of an import until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("import" in text for text in texts):
            self.has_begun.set()
            await asyncio.to_thread(self.may_end.wait, 300)
        return await super().embed_documents(texts)


async def test_erasure_waits_for_no_vectors_of_another_owner(tmp_path: Path) -> None:
    embedder = BusyEmbedder()
    async with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        await ann.add_many([Draft("secret plan", agent="spy", session="s"), Draft("yes on friday", session="s")])
        await bob.add_many([f"import {number}" for number in range(600)], embed="later")
        await asyncio.to_thread(embedder.has_begun.wait, 300)
        receipt = await ann.bind(agent="spy").erase()
        assert (receipt.records, receipt.files_clean) == (1, True)
        assert (await ann.stats()).vectors_pending == 0
        assert (await bob.stats()).vectors_pending == 600
        assert (await bob.erase()).records == 600
        embedder.may_end.set()
    await asyncio.to_thread(assert_consistent, tmp_path / "memory.db", WordEmbedder())


def deleted_and_scrubbed(handle: BoundMemory, number: int) -> bool:
    """Delete one secret record and make it unreadable; whether that is complete."""
    run_sync(handle.delete, f"{SECRET}id{number}")
    return run_sync(scrubbed, handle.memory)


@pytest.mark.parametrize("embedder", [None, WordEmbedder()], ids=["words", "vectors"])
def test_no_file_holds_anything_of_a_deleted_record_that_is_scrubbed(
    tmp_path: Path, embedder: WordEmbedder | None
) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=embedder) as memory:
        bob = memory.bind(user="bob")
        rng = random.Random(3)
        for n in range(60):
            run_sync(bob.add_many, [plain_draft(100 * n + k, rng) for k in range(5)])
            run_sync(bob.add, Draft(f"{SECRET}text " * rng.randrange(1, 100), id=f"{SECRET}id{n}", source_key=f"k{n}"))
        for n in range(59):
            run_sync(bob.delete, f"{SECRET}id{n}")
        assert traces(tmp_path)
        assert deleted_and_scrubbed(bob, 59)
        assert traces(tmp_path) == [], "while the memory is open"
        assert run_sync(bob.stats).records == 300
        assert run_sync(scrubbed, memory.bind().memory), "again, with nothing to do"
    assert_consistent(path, embedder)


def test_a_reader_of_an_older_state_keeps_a_deleted_record_until_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        bob = memory.bind(user="bob")
        for n in range(2):
            run_sync(bob.add, Draft(f"{SECRET}{n}", id=f"{SECRET}id{n}"))
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM record").fetchall()
            assert not deleted_and_scrubbed(bob, 0)
            assert traces(tmp_path)
        assert deleted_and_scrubbed(bob, 1)
        assert traces(tmp_path) == []


@pytest.mark.process
def test_a_record_deleted_by_a_process_that_died_is_unreadable_after_the_next_scrubbing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    dying = f"""
import os
from memory_core import Draft, Memory
memory = Memory({str(path)!r}, embedder=None)
bob = memory.bind(user="bob").sync
for n in range(100):
    bob.add(Draft("{SECRET} " * (n + 1), id=str(n)))
for n in range(100):
    bob.delete(str(n))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", dying], check=True)
    assert traces(tmp_path)
    with Memory(path, embedder=None) as memory:
        assert run_sync(scrubbed, memory.bind().memory)
        assert traces(tmp_path) == []


def test_a_store_that_cannot_look_into_its_files_does_not_call_them_clean(tmp_path: Path) -> None:
    with Memory(QdrantStore(":memory:", embedder=None)) as memory:
        assert not run_sync(scrubbed, memory.bind().memory)
