"""Several memories of one process on one file: they share what is open, and keep what is their own."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import (
    Draft,
    FingerprintError,
    InvalidInputError,
    Memory,
    SentenceChunker,
    StorageError,
    StoreUnavailableError,
    TokenChunker,
    run_sync,
)
from memory_core.adapting import on_core
from memory_core.storage.sqlite.connection import connect
from memory_core.storage.sqlite.files import find_or_create
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.testing import Ticks
from tests.open_store import store_of
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import WordEmbedder


class ClosingEmbedder(WordEmbedder):
    """Counts how often it was closed."""

    def __init__(self, name: str = "words") -> None:
        super().__init__(name)
        self.closings = 0

    async def close(self) -> None:
        self.closings += 1


class SlowEmbedder(WordEmbedder):
    """Is in the middle of its work until it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begins, self.may_end = threading.Event(), threading.Event()

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.begins.set()
        await asyncio.to_thread(self.may_end.wait, 300)
        return await super().embed_documents(texts)


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


async def reader_of(memory: Memory) -> Readers:
    store = await on_core(store_of, memory)
    assert isinstance(store, SqliteStore)
    return store._reader


async def test_memories_of_one_file_share_its_connections_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.db").symlink_to(path)
    (tmp_path / "linked").symlink_to(tmp_path / "folder")
    names: list[str | Path] = [
        path,
        tmp_path / "link.db",
        tmp_path / "folder" / ".." / "memory.db",
        os.path.relpath(path),  # noqa: ASYNC240  (nobody else is on this loop)
    ]
    memories = [Memory(name, embedder=None) for name in names]
    await asyncio.gather(*(memory.open() for memory in memories))
    readers = {await reader_of(memory) for memory in memories}
    assert len(readers) == 1
    await asyncio.gather(*(memory.bind(user="ann").add(f"note {n}") for n, memory in enumerate(memories)))
    for memory in memories:
        assert len((await memory.bind(user="ann").list()).records) == len(names)
        await memory.close()
    assert names_in(tmp_path) == ["folder", "link.db", "linked", "memory.db"]
    await asyncio.to_thread(assert_consistent, path)


async def test_databases_in_memory_are_never_shared() -> None:
    async with Memory(":memory:", embedder=None) as one, Memory(":memory:", embedder=None) as two:
        await one.bind(user="ann").add("tea")
        assert (await two.bind(user="ann").list()).records == ()


async def test_a_memory_that_is_closed_leaves_the_file_to_the_others(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None) as stays:
        async with Memory(path, embedder=None) as goes:
            await goes.bind(user="ann").add("tea")
        with pytest.raises(StorageError, match="was closed"):
            await goes.bind(user="ann").add("coffee")
        assert (await stays.bind(user="ann").search("tea"))[0].record.text == "tea"
        assert (tmp_path / "memory.db-wal").exists()
    assert names_in(tmp_path) == ["memory.db"]


async def test_each_memory_goes_by_its_own_clock(tmp_path: Path) -> None:
    late = Ticks()
    late.advance(hours=2)
    path, draft = tmp_path / "memory.db", Draft("tea", expires_at=Ticks().now + timedelta(hours=1))
    async with (
        Memory(path, embedder=None, clock=Ticks()) as early,
        Memory(path, embedder=None, clock=late) as later,
    ):
        await early.bind(user="ann").add(draft)
        assert (await early.bind(user="ann").stats()).records == 1
        assert (await later.bind(user="ann").stats()).records == 0


async def test_another_embedder_is_refused_while_the_file_is_open(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=WordEmbedder()) as memory:
        for other, named in ((WordEmbedder("others"), "the embedder others 1"), (None, "embedder=None")):
            with pytest.raises(FingerprintError, match=rf"with the embedder words 1, .* with {named} .*use one Memory"):
                await Memory(path, embedder=other).open()
        async with Memory(path, embedder=WordEmbedder()):
            await memory.bind(user="ann").add("tea")
    async with Memory(path, embedder=None):
        with pytest.raises(
            FingerprintError, match=r"with embedder=None, so it cannot be opened with the embedder words"
        ):
            await Memory(path, embedder=WordEmbedder()).open()


async def test_another_chunker_is_refused_while_the_file_is_open(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None, chunker=SentenceChunker(500)):
        async with Memory(path, embedder=None, chunker=SentenceChunker(500)):
            pass
        for other in (SentenceChunker(600), TokenChunker()):
            with pytest.raises(InvalidInputError, match=r"SentenceChunker\(max_chars=500\), .* the same chunker"):
                await Memory(path, embedder=None, chunker=other).open()
    async with Memory(path, embedder=None, chunker=TokenChunker()):
        pass


async def test_an_embedder_is_closed_with_its_memory_unless_an_open_file_works_with_it(tmp_path: Path) -> None:
    path, first, second, refused = tmp_path / "memory.db", ClosingEmbedder(), ClosingEmbedder(), ClosingEmbedder("x")
    one, two = Memory(path, embedder=first), Memory(path, embedder=second)
    elsewhere = Memory(tmp_path / "other.db", embedder=first)
    for memory in (one, two, elsewhere):
        await memory.open()
    for embedder, chunker in ((refused, SentenceChunker()), (first, SentenceChunker(5))):
        with pytest.raises((FingerprintError, InvalidInputError)):
            await Memory(path, embedder=embedder, chunker=chunker).open()
    assert (refused.closings, first.closings) == (1, 0)
    await one.close()
    assert first.closings == 0
    await two.close()
    assert (first.closings, second.closings) == (0, 1)
    await elsewhere.close()
    assert first.closings > 0


async def test_an_opener_that_fails_or_is_cancelled_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        cancelled = asyncio.create_task(Memory(path, embedder=WordEmbedder()).open())
        await asyncio.sleep(0.1)  # it waits for the holder, and the others wait for it
        memories = [Memory(path, embedder=WordEmbedder("second")) for _ in range(3)]
        others = [asyncio.create_task(memory.open()) for memory in memories]
        await asyncio.sleep(0.1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        holder.execute("ROLLBACK")
        await asyncio.gather(*others)
    wrong = Memory(path, embedder=WordEmbedder("wrong"))
    failing, fine = asyncio.create_task(wrong.open()), asyncio.create_task(memories[0].open())
    with pytest.raises(FingerprintError):
        await failing
    await fine
    for memory in memories:
        await memory.close()
    await asyncio.to_thread(assert_consistent, path)


async def test_a_memory_can_be_opened_while_the_last_one_closes(tmp_path: Path) -> None:
    path, slow = tmp_path / "memory.db", SlowEmbedder()
    last = await Memory(path, embedder=slow).open()
    adding = asyncio.create_task(last.bind(user="ann").add("tea"))
    assert await asyncio.to_thread(slow.begins.wait, 300)
    closing_it = asyncio.create_task(last.close())
    await asyncio.sleep(0.05)
    following = Memory(path, embedder=WordEmbedder())
    opening = asyncio.create_task(following.open())
    await asyncio.sleep(0.05)
    slow.may_end.set()
    await asyncio.gather(adding, closing_it, opening)
    assert (await following.bind(user="ann").search("tea"))[0].record.text == "tea"
    await following.close()


async def test_a_file_with_a_second_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None):
        pass
    (tmp_path / "second.db").hardlink_to(path)
    for name in (path, tmp_path / "second.db"):
        with pytest.raises(StoreUnavailableError, match=r"has 2 names \(hard links\).*remove the other"):
            await Memory(name, embedder=None).open()
    (tmp_path / "second.db").unlink()
    async with Memory(path, embedder=None):
        pass


async def test_a_file_that_is_replaced_while_it_is_opened_is_not_used(tmp_path: Path) -> None:
    path, which = find_or_create(tmp_path / "memory.db")
    path.rename(tmp_path / "moved.db")
    path.touch()
    with pytest.raises(StoreUnavailableError, match="was replaced while it was opened; open it again"):
        await on_core(partial(connect, str(path), wanted=which))


@pytest.mark.parametrize("what", ["deleted", "replaced"])
async def test_a_file_that_goes_while_it_is_open_takes_no_more_writes(tmp_path: Path, what: str) -> None:
    path = tmp_path / "memory.db"
    async with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.add("before")
        path.rename(tmp_path / "moved.db")
        if what == "replaced":
            path.touch()
        writes = (ann.add("tea"), ann.add_many(["tea", "tea"]), ann.delete("x"), ann.erase())
        for write in writes:
            with pytest.raises(StoreUnavailableError, match=rf"was {what} while it was open.*close this memory"):
                await write
        if what == "replaced":
            assert path.read_bytes() == b""
    with pytest.raises(StoreUnavailableError, match=r"memory\.db-wal', the write-ahead log of the earlier file"):
        await Memory(path, embedder=None).open()
    (tmp_path / "memory.db-wal").rename(tmp_path / "moved.db-wal")  # only it has what was written last
    async with Memory(path, embedder=None) as memory:
        await memory.bind(user="ann").add("after")
    async with Memory(tmp_path / "moved.db", embedder=None) as memory:
        assert [record.text for record in (await memory.bind(user="ann").list()).records] == ["before"]
    assert names_in(tmp_path) == ["memory.db", "moved.db"]


def test_urls_are_no_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///x.db", "sqlite+aiosqlite:///x.db", "file:///x.db", "postgresql://key@host/x"):
        with pytest.raises(InvalidInputError, match=r"is an address .*give the path") as refused:
            Memory(url)
        assert "key@" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_looking_at_a_file_of_somebody_else_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE notes (text)")
    db.commit()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StorageError, match="not a memory store"):
        run_sync(Memory(path, embedder=None).open)
    assert sorted(tmp_path.iterdir()) == before
    db.close()
    with pytest.raises(StorageError, match="not a memory store"):
        run_sync(Memory(path, embedder=None).open)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("milliseconds", [*(quarter / 4 for quarter in range(16)), *range(4, 30, 2)])
async def test_an_opening_that_is_cancelled_leaves_one_whole_file_or_none(tmp_path: Path, milliseconds: float) -> None:
    """As by Ctrl-C: what the connection's thread began is finished before the close is."""
    path = tmp_path / "memory.db"
    memory = Memory(path, embedder=None)
    opening = asyncio.create_task(memory.open())
    await asyncio.sleep(milliseconds / 1000)
    opening.cancel()
    await asyncio.wait([opening])
    await memory.close()
    assert _names(tmp_path) in ([], ["memory.db"])
    async with Memory(path, embedder=None) as again:
        await again.bind(user="ann").add("tea")


def _names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]
