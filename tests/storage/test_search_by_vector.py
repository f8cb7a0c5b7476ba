"""Searching by a vector that the caller brings along, in every store."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, QdrantStore, Where, run_sync
from tests.storage.embedders import WordEmbedder

QUESTION = "Which tea does Ann drink?"


@pytest.fixture(params=["sqlite", "qdrant"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    embedder = WordEmbedder()
    given = Memory(tmp_path / "memory.db", embedder=embedder)
    with given if request.param == "sqlite" else Memory(QdrantStore(":memory:", embedder=embedder)) as memory:
        yield memory


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    ann = memory.bind(app="demo", user="ann")
    told = ["Ann drinks jasmine tea", "The train leaves at nine", "Ann drinks jasmine tea!", "Jasmine grows here"]
    run_sync(ann.add_many, [*told, Draft("Tea is kept in the tin", kind="fact")])
    return ann


@pytest.fixture
def vector() -> list[float]:
    """Of the question, at three times the length."""
    return [3.0 * float(number) for number in asyncio.run(WordEmbedder().embed_query(QUESTION))]


def test_it_finds_what_the_text_of_the_vector_finds(ann: BoundMemory, vector: list[float]) -> None:
    expected = run_sync(ann.search, QUESTION, mode="vector", floor=False)
    found = run_sync(ann.search_by_vector, vector, floor=False)
    assert [hit.record.text for hit in found] == [hit.record.text for hit in expected]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
    assert run_sync(ann.search_by_vector, vector) == run_sync(ann.search, QUESTION, mode="vector")


def test_conditions_and_the_owner_bound_it(ann: BoundMemory, memory: Memory, vector: list[float]) -> None:
    (fact,) = run_sync(ann.search_by_vector, vector, limit=1, where=Where(kinds=("fact",)), floor=False)
    assert fact.record.text == "Tea is kept in the tin"
    assert run_sync(memory.bind(app="demo", user="bob").search_by_vector, vector, floor=False) == []


def test_diversity_leaves_out_what_was_said(ann: BoundMemory, vector: list[float]) -> None:
    alike = run_sync(ann.search_by_vector, vector, limit=2, floor=False)
    other = run_sync(ann.search_by_vector, vector, limit=2, floor=False, diversity=0.7)
    near = run_sync(ann.search_by_vector, vector, limit=2, floor=False, diversity=0.7, candidates=2)
    assert {hit.record.text for hit in alike} == {"Ann drinks jasmine tea", "Ann drinks jasmine tea!"}
    assert len({hit.record.text.strip("!") for hit in other}) == 2
    assert {hit.record.text for hit in near} == {hit.record.text for hit in alike}


def test_what_is_no_vector_of_this_memory_is_refused(ann: BoundMemory, vector: list[float]) -> None:
    wrong: list[Any] = [vector[:-1], [0.0] * len(vector), [math.nan] * len(vector), [vector], ["tea"], "tea", None, []]
    for other in wrong:
        with pytest.raises(InvalidInputError, match="vector"):
            run_sync(ann.search_by_vector, other)
    with pytest.raises(InvalidInputError, match="limit"):
        run_sync(ann.search_by_vector, vector, diversity=0.5, candidates=0)


def test_very_small_and_very_large_numbers_have_a_direction_too(ann: BoundMemory, vector: list[float]) -> None:
    found = run_sync(ann.search_by_vector, vector)
    for factor in (1e-200, 1e200):
        assert run_sync(ann.search_by_vector, [factor * number for number in vector]) == found


def test_a_memory_without_vectors_refuses_it() -> None:
    with Memory(":memory:", embedder=None) as memory, pytest.raises(InvalidInputError, match="embedder=None"):
        run_sync(memory.bind(user="ann").search_by_vector, [1.0])
