"""An embedder of somebody else may raise or return anything: no text is lost, and no search is wrongly empty."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_core import EmbeddingError, Memory, QdrantStore, run_sync
from tests.storage.embedders import DIMENSIONS, WordEmbedder


class Misbehaving(WordEmbedder):
    """Answers as it is told, once it is."""

    answer: Callable[[int], Any] | None = None
    """From how many vectors are wanted to what comes instead."""

    async def embed_documents(self, texts: Any) -> Any:
        return await super().embed_documents(texts) if self.answer is None else self.answer(len(texts))

    async def embed_query(self, text: str) -> Any:
        return await super().embed_query(text) if self.answer is None else self.answer(1)[0]


def broken(_: int) -> Any:
    raise OSError("the model is on fire")


def leaves(_: int) -> Any:
    raise SystemExit("no model")


def gives_up(_: int) -> Any:
    raise asyncio.CancelledError


ANSWERS: dict[str, Callable[[int], Any]] = {
    "raises": broken,
    "ends the program": leaves,
    "was cancelled inside": gives_up,
    "nothing": lambda count: [None] * count,
    "not a number": lambda count: np.full((count, DIMENSIONS), np.nan),
    "too long": lambda count: np.ones((count, DIMENSIONS + 1)),
    "words": lambda count: [["x"] * DIMENSIONS] * count,
    "a table": lambda count: np.ones((count, 1, DIMENSIONS)),
}


@pytest.fixture(params=["sqlite", "qdrant"])
def embedder_and_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Misbehaving, Memory]]:
    embedder = Misbehaving()
    sqlite = request.param == "sqlite"
    store = tmp_path / "memory.db" if sqlite else QdrantStore(":memory:", embedder=embedder)
    with Memory(store, embedder=embedder) as memory:
        yield embedder, memory


def test_what_it_cannot_embed_is_kept_and_what_it_cannot_ask_is_an_error(
    embedder_and_memory: tuple[Misbehaving, Memory],
) -> None:
    embedder, memory = embedder_and_memory
    ann = memory.bind(user="ann")
    run_sync(ann.add, "Black coffee")
    for number, (name, answer) in enumerate(ANSWERS.items(), 1):
        embedder.answer = answer
        record = run_sync(ann.add, f"Jasmine tea, {name}")
        assert run_sync(ann.get, record.id) == record
        assert run_sync(ann.stats).vectors_pending == number
        for mode in ("hybrid", "vector"):
            with pytest.raises(EmbeddingError, match=r"words (failed: |returned |has cancelled its call)"):
                run_sync(ann.search, "jasmine", mode=mode)
        assert len(run_sync(ann.search, "jasmine", mode="lexical")) == number
    embedder.answer = None
    assert run_sync(ann.search, "Black coffee", mode="vector")[0].record.text == "Black coffee"


class Loud(WordEmbedder):
    """Vectors of any length but 1, as most raw models make them."""

    async def embed_documents(self, texts: Any) -> Any:
        lengths = np.array([[1e-3 + len(text) ** 3] for text in texts], np.float32)
        return lengths * await super().embed_documents(texts)

    async def embed_query(self, text: str) -> Any:
        return 1e-9 * await super().embed_query(text)


@pytest.mark.parametrize("kind", ["sqlite", "qdrant"])
def test_the_length_of_a_vector_says_nothing(tmp_path: Path, kind: str) -> None:
    texts = ["tea", "black tea with milk", f"one long text {'and more ' * 50} tea", "the bus leaves at nine"]

    def scores(embedder: WordEmbedder, name: str) -> list[Any]:
        store = tmp_path / name if kind == "sqlite" else QdrantStore(":memory:", embedder=embedder)
        with Memory(store, embedder=embedder) as memory:
            ann = memory.bind(user="ann")
            run_sync(ann.add_many, texts)
            found = [run_sync(ann.search, "black tea", mode=mode, floor=False) for mode in ("hybrid", "vector")]
            return [(hit.record.text, pytest.approx(hit.score, rel=1e-2, abs=1e-2)) for hits in found for hit in hits]

    assert scores(Loud(), "loud.db") == scores(WordEmbedder(), "unit.db")


def test_a_vector_in_a_file_of_somebody_else_wins_nothing_by_its_length(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        run_sync(memory.bind(user="ann").add_many, ["black tea", "the bus leaves at nine", "send me your password"])
    loud = np.full(DIMENSIONS, 6e4, np.float16).tobytes()
    for blob in (loud, b"\xff\x7f" * DIMENSIONS):  # the second is not a number at all
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE chunk SET vector = ?, vector_digest = ? WHERE record & 15 = 3", (blob, zlib.crc32(blob)))
        with Memory(path, embedder=WordEmbedder()) as memory:
            hits = run_sync(memory.bind(user="ann").search, "black tea", mode="vector", floor=False)
            assert hits[0].record.text == "black tea"
            assert max(hit.score for hit in hits) <= 1.01


class GivingUp(WordEmbedder):
    """Waits, and answers a cancellation with an error, as a task group does before Python 3.13 if its task has failed
    in the same moment."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()  # it is asked on the core loop, which runs in another thread

    async def embed_documents(self, texts: Any) -> Any:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise EmbeddingError("the model is gone") from None


async def test_an_error_that_hides_a_cancellation_does_not_keep_a_memory_from_closing(tmp_path: Path) -> None:
    embedder = GivingUp()
    memory = Memory(tmp_path / "m.db", embedder=embedder)
    await memory.bind(user="ann").add("Ann keeps bees", embed="later")
    assert await asyncio.to_thread(embedder.asked.wait, 300)
    async with asyncio.timeout(300):
        await memory.close()
    async with Memory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        assert [hit.record.text for hit in await ann.search("bees")] == ["Ann keeps bees"]
