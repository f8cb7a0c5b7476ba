"""Private and shared memories read together: the tests of `tests/core` that depend on the store, on Qdrant's engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from memory_core import Memory, MiniLmEmbedder
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from tests.core import test_spaces, test_spaces_generated
from tests.core.test_spaces import ann, team
from tests.core.test_spaces import test_changes_through_other_handles_are_seen_at_once as test_changes_are_seen_at_once
from tests.core.test_spaces import test_reads_see_both_and_say_whose_each_memory_is as test_reads_see_both
from tests.core.test_spaces import test_what_is_not_granted_is_not_reached as test_only_what_is_granted_is_reached
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import Loopback

__all__ = [  # fixtures and tests that pytest finds here
    "ann",
    "team",
    "test_changes_are_seen_at_once",
    "test_only_what_is_granted_is_reached",
    "test_reads_see_both",
]


@pytest.fixture
def new_memory(real_engine: EdgeEngine, real_loopback: Loopback) -> Memory:
    real_loopback.on_loop(real_engine.clear)
    return Memory(QdrantStore(Server(url=real_loopback.url, timeout_seconds=60), embedder=MiniLmEmbedder()))


@pytest.fixture
async def memory(new_memory: Memory) -> AsyncGenerator[Memory]:
    async with new_memory as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "questions"),
    [
        ("facts", 4),
        *(pytest.param(corpus, 25, marks=pytest.mark.torture) for corpus in ("facts", "people_talking", "agent_logs")),
    ],
)
async def test_a_record_ranks_as_if_one_owner_had_them_all(
    memory: Memory, corpus: str, questions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_spaces, "QUESTIONS", questions)
    await test_spaces.test_a_record_ranks_as_if_one_owner_had_them_all(memory, corpus)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [10, pytest.param(60, marks=pytest.mark.torture)])
async def test_nobody_reaches_more_than_is_granted(
    new_memory: Memory, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_spaces_generated, "STEPS", steps)
    await test_spaces_generated.test_nobody_reaches_more_than_is_granted(new_memory, 0)
