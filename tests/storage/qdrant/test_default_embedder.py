"""The default embedder in both stores: English and other languages beside each other are found for the same reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory_core import Hit, Memory, MultilingualEmbedder
from memory_core.storage.qdrant.store import QdrantStore
from tests.corpora.loading import owners

CORPORA = ("languages", "people_talking")
RECORDS, QUESTIONS = 12, 6


async def found(memory: Memory) -> dict[str, Sequence[Hit]]:
    """The hits of some questions to one owner, whose records are of an English corpus and of one in six languages."""
    async with memory:
        ann = memory.bind(user="ann")
        some = [owner for corpus in CORPORA for owner in owners(corpus)[:6]]
        for owner in some:
            await ann.add_many(owner.records[:RECORDS])
        asked = [question.text for owner in some for question in owner.questions[:QUESTIONS]]
        return {text: await ann.search(text, limit=5, floor=False) for text in asked}


@pytest.mark.uncovered
def test_both_stores_find_the_same(tmp_path: Path) -> None:
    """As long as an owner has no more records than are fetched as candidates, nothing is approximate."""
    ours = asyncio.run(found(Memory(tmp_path / "memory.db")))
    theirs = asyncio.run(found(Memory(QdrantStore(":memory:", embedder=MultilingualEmbedder()))))
    for question, hits in ours.items():
        scores = [[hit.score for hit in some] for some in (hits, theirs[question])]
        assert scores[0] == pytest.approx(scores[1], abs=0.05), question
        assert theirs[question][0].record.source_key == hits[0].record.source_key, question
