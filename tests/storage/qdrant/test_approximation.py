"""The losses of an approximate server: on its own engine, with its graph and its int8 vectors, beside a file."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_core import BoundMemory, Draft, Hit, Memory, run_sync
from memory_core.models import Mode
from memory_core.storage.qdrant.searching import CANDIDATES
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.transfer.copying import copy_memory
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import Loopback

RECORDS = 4 * CANDIDATES
VOCABULARY = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in ("a", "e", "i", "o", "u") for c in ("ck", "lt", "nd", "rp")]
START = datetime(2024, 5, 6, tzinfo=UTC)
ASKED = 10


def life(dice: random.Random) -> list[Draft]:
    """Turns of conversations about a few things each."""
    drafts: list[Draft] = []
    for session in range(RECORDS // 40):
        about = dice.sample(VOCABULARY, 12)
        for turn in range(40):
            words = dice.choices(about, k=6) + dice.choices(VOCABULARY, k=6)
            when = START + timedelta(days=session, minutes=turn)
            author = ("Ann", "Bob")[turn % 2]
            drafts.append(Draft(" ".join(words), session=f"s{session}", author=author, occurred_at=when))
    return drafts


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, real_engine: EdgeEngine, real_loopback: Loopback
) -> Iterator[tuple[BoundMemory, BoundMemory]]:
    """The same owner in a file and on the engine."""
    path = tmp_path_factory.mktemp("approximation") / "m.db"
    store = QdrantStore(
        Server(url=real_loopback.url, timeout_seconds=30), embedder=WordEmbedder(), collection="approximation"
    )
    with Memory(Path(path), embedder=WordEmbedder()) as file, Memory(store) as server:
        drafts = life(random.Random(7))
        rare = " ".join([*VOCABULARY[:80], "contract", *VOCABULARY[80:160], "4711", *VOCABULARY[160:]])
        drafts[RECORDS // 2] = Draft(rare, session="s10", author="Ann", occurred_at=drafts[RECORDS // 2].occurred_at)
        for word in ("contract", "4711"):
            drafts += [Draft(f"{word} no{number}", occurred_at=START) for number in range(CANDIDATES)]
        run_sync(file.bind(user="ann").add_many, drafts)
        run_sync(copy_memory, file, server)
        real_loopback.on_loop(real_engine.optimize)
        yield file.bind(user="ann"), server.bind(user="ann")


def shared(both: tuple[BoundMemory, BoundMemory], mode: Mode) -> float:
    """The number of a file's ten best hits that a server finds among its ten best, on average."""
    dice = random.Random(8)
    found: list[float] = []
    for _ in range(ASKED):
        query = " ".join(dice.choices(VOCABULARY, k=4))
        one, other = (run_sync(handle.search, query, mode=mode, floor=False) for handle in both)
        found.append(len(ids(one) & ids(other)) / len(one))
    return statistics.mean(found)


def ids(hits: list[Hit]) -> set[str]:
    return {hit.record.id for hit in hits}


@pytest.mark.slow
def test_little_is_lost_where_the_server_is_approximate(both: tuple[BoundMemory, BoundMemory]) -> None:
    assert shared(both, "vector") >= 0.98
    assert shared(both, "hybrid") >= 0.85
    assert shared(both, "lexical") >= 0.8


@pytest.mark.slow
def test_every_word_is_exact_however_many_share_a_word(both: tuple[BoundMemory, BoundMemory]) -> None:
    """Hundreds of short records match better by one word; the one that has both is long."""
    for handle in both:
        (hit,) = run_sync(handle.search, "contract 4711", every_word=True)
        assert "contract" in hit.record.text
        assert "4711" in hit.record.text
