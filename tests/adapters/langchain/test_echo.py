"""One fact among twenty, asked in many conversations: the retriever finds it each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory, run_sync
from memory_langchain import MemoryRetriever
from tests.recall.asking import ANSWER, ASKED, assert_shown, facts

pytestmark = pytest.mark.uncovered


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[BoundMemory]:
    with Memory(tmp_path / "memory.db") as memory:  # recall goes by meaning, too
        yield memory.bind(app="demo", user="ann")


def test_the_retriever_finds_it_every_time(handle: BoundMemory) -> None:
    for n, fact in enumerate(facts()):
        run_sync(handle.remember, [("user", fact), ("assistant", "Noted.")], session=f"fact {n}")
    retriever = MemoryRetriever(memory=handle)
    for n, question in enumerate(ASKED):
        assert_shown([found.page_content for found in retriever.invoke(question)], question)
        run_sync(handle.remember, [("user", question), ("assistant", ANSWER)], session=f"asking {n}")
