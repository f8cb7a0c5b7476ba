"""Searching by a vector of the caller."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import asyncio
import math
from typing import Any, Final

import pytest

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, Where, run_sync
from memory_core.testing.base import Contract, MakeEmbedder, add, texts

QUESTION: Final = "Which tea does Ann drink?"


class VectorContract(Contract):
    """A contract: the hits of `search_by_vector`; without an embedder, only that it refuses."""

    @pytest.fixture
    def vector(self, make_embedder: MakeEmbedder | None) -> list[float]:
        """The vector of the question, at three times its length."""
        if make_embedder is None:
            pytest.skip("a store without vectors")
        embedder = make_embedder()

        async def embed() -> list[float]:
            try:
                return [3.0 * float(number) for number in await embedder.embed_query(QUESTION)]
            finally:
                await embedder.close()

        return asyncio.run(embed())

    @pytest.fixture
    def facts(self, ann: BoundMemory) -> BoundMemory:
        facts = ["Ann drinks jasmine tea", "The train leaves at nine", "Ann drinks jasmine tea!", "Jasmine grows here"]
        add(ann, *facts, Draft("Tea is kept in the tin", kind="fact"))
        return ann

    def test_a_vector_finds_what_its_text_finds(self, facts: BoundMemory, vector: list[float]) -> None:
        for floor in (False, True):
            expected = run_sync(facts.search, QUESTION, mode="vector", floor=floor)
            found = run_sync(facts.search_by_vector, vector, floor=floor)
            assert texts(found) == texts(expected)
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        assert len(run_sync(facts.search_by_vector, vector, floor=False)) == 5

    def test_a_record_is_found_by_the_nearest_of_its_passages(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        if not has_vectors:
            pytest.skip("a store without vectors")
        facts = ["Ann drinks jasmine tea", "Her train leaves at nine", "The cat is called Pepper", "Bob repairs clocks"]
        (item,) = add(ann, Draft(passages=facts))
        add(ann, "Clocks and trains, and tea")
        assert item.text == "\f".join(facts)
        for fact in facts:
            (best,) = run_sync(ann.search, fact, mode="vector", limit=1)
            assert best.record.id == item.id
            assert best.similarity == pytest.approx(1, abs=0.01)

    def test_conditions_and_the_owner_bound_it(self, memory: Memory, facts: BoundMemory, vector: list[float]) -> None:
        (fact,) = run_sync(facts.search_by_vector, vector, limit=1, where=Where(kinds=("fact",)), floor=False)
        assert fact.record.text == "Tea is kept in the tin"
        stranger = memory.bind(app="contract", user="bob")
        assert run_sync(stranger.search_by_vector, vector, floor=False) == []

    def test_diversity_leaves_out_repetitions(self, facts: BoundMemory, vector: list[float]) -> None:
        alike = run_sync(facts.search_by_vector, vector, limit=2, floor=False)
        other = run_sync(facts.search_by_vector, vector, limit=2, floor=False, diversity=0.7)
        near = run_sync(facts.search_by_vector, vector, limit=2, floor=False, diversity=0.7, candidates=2)
        assert set(texts(alike)) == {"Ann drinks jasmine tea", "Ann drinks jasmine tea!"}
        assert len({hit.record.text.strip("!") for hit in other}) == 2
        assert set(texts(near)) == set(texts(alike))

    def test_very_small_and_very_large_numbers_have_a_direction_too(
        self, facts: BoundMemory, vector: list[float]
    ) -> None:
        found = run_sync(facts.search_by_vector, vector)
        for factor in (1e-200, 1e200):
            assert run_sync(facts.search_by_vector, [factor * number for number in vector]) == found

    def test_an_invalid_vector_is_refused(self, facts: BoundMemory, vector: list[float]) -> None:
        wrong: list[Any] = [vector[:-1], [0.0] * len(vector), [math.inf] * len(vector), [vector], [10**400] * 8]
        wrong += [["tea"], "tea", None, []]
        for other in wrong:
            with pytest.raises(InvalidInputError, match="vector"):
                run_sync(facts.search_by_vector, other)
        with pytest.raises(InvalidInputError, match="limit"):
            run_sync(facts.search_by_vector, vector, diversity=0.5, candidates=0)

    def test_a_memory_without_vectors_says_so(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        if has_vectors:
            pytest.skip("a store with vectors")
        with pytest.raises(InvalidInputError, match="embedder=None"):
            run_sync(ann.search_by_vector, [1.0])
