"""One fact among twenty, asked in many conversations: the retriever finds it each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory, MiniLmEmbedder, RecallOptions, run_sync
from memory_langchain import (
    MemoryRetriever,
)
from tests.recall.asking import ANSWER, ENGLISH, IN_ANY_LANGUAGE, MIXED, assert_shown, facts

pytestmark = pytest.mark.uncovered


@pytest.fixture(scope="module")
def embedder() -> Iterator[MiniLmEmbedder]:
    embedder = MiniLmEmbedder()
    yield embedder
    run_sync(embedder.close)


@pytest.fixture
def handle(tmp_path: Path, embedder: MiniLmEmbedder) -> Iterator[BoundMemory]:
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:  # recall goes by meaning, too
        yield memory.bind(app="demo", user="ann")


@pytest.mark.parametrize(("recall", "asked"), [(RecallOptions(), ENGLISH), (IN_ANY_LANGUAGE, MIXED)])
def test_the_retriever_finds_it_every_time(handle: BoundMemory, recall: RecallOptions, asked: Sequence[str]) -> None:
    for n, fact in enumerate(facts()):
        run_sync(handle.remember, [("user", fact), ("assistant", "Noted.")], session=f"fact {n}")
    retriever = MemoryRetriever(memory=handle, recall=replace(recall, limit=None), k=recall.limit or 4)
    for n, question in enumerate(asked):
        assert_shown([found.page_content for found in retriever.invoke(question)], question)
        run_sync(handle.remember, [("user", question), ("assistant", ANSWER)], session=f"asking {n}")
