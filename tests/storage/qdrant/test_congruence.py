"""The same life in SQLite and in Qdrant: the same records, the same vectors, the same hits for the same reasons."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from memory_core import BoundMemory, Draft, Hit, Memory, MemoryRecord, Patch, Where, run_sync
from memory_core.chunking import split
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import Ticks
from memory_core.where.where import ANY_STATE
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import dense_of, points, settle

WORDS = [
    "tea",
    "coffee",
    "boat",
    "train",
    "lake",
    "Oslo",
    "Ann",
    "Bob",
    "sail",
    "when",
    "where",
    "cake",
    "green",
    "noon",
    "book",
    "river",
]
START = datetime(2024, 5, 6, tzinfo=UTC)
QUERIES = ("When did Ann sail?", "green tea", "the lake at noon", "book", "Where is the boat, Bob?", "cake in May 2024")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Memory, Memory, Ticks]]:
    clock = Ticks()
    with (
        Memory(tmp_path / "m.db", embedder=WordEmbedder(), clock=clock) as one,
        Memory(QdrantStore(":memory:", embedder=WordEmbedder(), clock=clock), clock=clock) as other,
    ):
        yield one, other, clock


class Life:
    """The same operations on several handles; ids are chosen here so that they are the same."""

    def __init__(self, *handles: BoundMemory, seed: int) -> None:
        self.handles = handles
        self._random = random.Random(seed)
        self._next = 0

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self._step()

    def _step(self) -> None:
        step = self._random.random()
        ids = [record.id for record in run_sync(self.handles[0].list, where=Where(left=None), limit=10_000)]
        if step < 0.6 or not ids:
            drafts = [self._draft() for _ in range(self._random.choice((1, 1, 1, 2, 5)))]
            self._do(lambda handle: run_sync(handle.add_many, drafts))
        elif step < 0.75:
            gone = self._random.choice(ids)
            self._do(lambda handle: run_sync(handle.delete_where, Where(ids=(gone,)), forget=False))
        elif step < 0.95:
            chosen, patch = self._random.choice(ids), self._patch()
            self._do(lambda handle: run_sync(handle.update, chosen, patch))
        else:
            draft = self._draft(source_key=f"k{self._random.randrange(4)}")
            self._do(lambda handle: run_sync(handle.put_many, [draft]))

    def _do(self, operation: object) -> None:
        results = [operation(handle) for handle in self.handles]  # type: ignore[operator]
        assert all(result == results[0] for result in results)

    def _text(self) -> str:
        text = " ".join(self._random.choices(WORDS, k=self._random.randrange(1, 9)))
        return text + self._random.choice(("", "?", "!", "."))

    def _draft(self, source_key: str | None = None) -> Draft:
        self._next += 1
        if source_key is None and self._random.random() < 0.3:
            source_key = f"s{self._random.randrange(30)}"
        return Draft(
            self._text() if self._random.random() < 0.95 else "",
            id=f"id{self._next}",
            data={"n": self._next},
            author=self._random.choice(("Ann", "Bob", None)),
            session=self._random.choice(("a", "b", None)),
            kind=self._random.choice(("note", "fact")),
            occurred_at=START + timedelta(hours=self._random.randrange(48)),
            source_key=source_key,
        )

    def _patch(self) -> Patch:
        changes = [
            Patch(text=self._text()),
            Patch(author="Bob"),
            Patch(occurred_at=START + timedelta(hours=self._random.randrange(48))),
            Patch(state=self._random.choice(("archived", "active"))),
            Patch(left=self._random.random() < 0.5),
            Patch(importance=self._random.random()),
        ]
        return self._random.choice(changes)


def wait_until_paid(*handles: BoundMemory) -> None:
    deadline = time.monotonic() + 300
    while any(run_sync(handle.stats).vectors_pending for handle in handles):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(1, 20))])
def test_a_life_leads_to_the_same_memories_and_the_same_ranking(pair: tuple[Memory, Memory, Ticks], seed: int) -> None:
    """As long as an owner has no more records than are fetched as candidates, nothing is approximate."""
    one, other, _ = pair
    handles = one.bind(user="ann"), other.bind(user="ann")
    Life(*handles, seed=seed).live(60)
    wait_until_paid(*handles)
    everywhere = ANY_STATE
    for order in ("newest", "oldest", "importance", "accessed"):
        pages = [run_sync(handle.list, where=everywhere, order=order, limit=1_000).records for handle in handles]
        assert pages[0] == pages[1], order
    run_sync(handles[0].update, pages[0][0].id, Patch(state="active"))
    run_sync(handles[1].update, pages[0][0].id, Patch(state="active"))
    for where in (Where(), Where(kinds=("fact",)), Where(session="a"), everywhere):
        for query in QUERIES:
            for mode in ("hybrid", "lexical", "vector"):
                found = [
                    run_sync(handle.search, query, where=where, mode=mode, limit=200, explain=True)
                    for handle in handles
                ]
                assert_congruent(*found, query=f"{query} {mode} {where}")


def assert_congruent(one: list[Hit], other: list[Hit], *, query: str) -> None:
    """The same hits with nearly the same scores; records whose scores are nearly the same may change places."""
    ours, theirs = ({hit.record.id: hit for hit in hits} for hits in (one, other))
    assert ours.keys() == theirs.keys(), query
    for hit in one:
        assert theirs[hit.record.id].score == pytest.approx(hit.score, abs=2e-2), (query, hit)
    scores = [[hit.score for hit in hits] for hits in (one, other)]
    assert scores[0] == pytest.approx(scores[1], abs=2e-2), query


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(1, 20))])
def test_every_vector_is_of_its_text(loopback: Loopback, connect: Open, seed: int) -> None:
    ann = connect().bind(user="ann")
    Life(ann, seed=seed).live(40)
    settle(loopback)
    held = points(loopback)
    for record in run_sync(ann.list, where=ANY_STATE, limit=10_000).records:
        if record.text:
            np.testing.assert_allclose(dense_of(held[record.id][1]), expected(record), atol=1e-3)


def expected(record: MemoryRecord) -> list[list[float]]:
    embedder = WordEmbedder()
    texts = [record.text[start:stop] for start, stop in split(record.text)]
    rows: list[list[float]] = [embedder._vector(text).astype(np.float16).tolist() for text in texts]
    return rows
