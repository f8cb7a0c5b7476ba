"""Maximal marginal relevance, as a property of lists of hits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Component, Draft, Hit, Scope
from memory_core.records.draft_to_record import complete
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.diversity import diversified, similarity
from memory_core.testing import Ticks

SCOPE = Scope("demo", "ann")
WORDS = st.lists(st.sampled_from(["tea", "green", "black", "pot", "cup", "rain", "bus"]), max_size=4).map(" ".join)


def hits_of(found: list[tuple[str, float]]) -> list[Hit]:
    """Hits by descending score, each explained by two halves of its score."""
    return [
        Hit(
            complete(Draft(text or "x", id=str(n)), SCOPE, Ticks().now),
            score,
            None,
            {"one": Component(1, score / 2), "two": Component(1, score / 2)},
        )
        for n, (text, score) in enumerate(sorted(found, key=lambda item: -item[1]))
    ]


HITS = st.lists(st.tuples(WORDS, st.floats(0.01, 5)), max_size=8).map(hits_of)
SHARES = st.floats(0, 1)


@given(HITS, st.integers(1, 9), SHARES)
def test_what_is_chosen_is_some_of_the_hits_with_scores_that_fall(hits: list[Hit], limit: int, share: float) -> None:
    chosen = diversified(hits, limit, share)
    assert len(chosen) == min(limit, len(hits))
    assert len({hit.record.id for hit in chosen}) == len(chosen)
    assert {hit.record.id for hit in chosen} <= {hit.record.id for hit in hits}
    assert all(one.score >= other.score - 1e-9 for one, other in pairwise(chosen))
    for hit in chosen:
        assert hit.components is not None
        assert sum(part.weighted for part in hit.components.values()) == pytest.approx(hit.score)


@given(HITS, st.integers(1, 9))
def test_without_diversity_the_order_stays(hits: list[Hit], limit: int) -> None:
    assert [hit.record.id for hit in diversified(hits, limit, 0.0)] == [hit.record.id for hit in hits[:limit]]


@given(HITS, SHARES)
def test_every_choice_is_the_best_by_the_formula(hits: list[Hit], share: float) -> None:
    terms = {hit.record.id: frozenset(analyse(hit.record.text)) for hit in hits}
    best = max((hit.score for hit in hits), default=1.0)
    chosen = diversified(hits, len(hits), share)
    for place, hit in enumerate(chosen):
        before = [terms[earlier.record.id] for earlier in chosen[:place]]
        values = {
            other.record.id: (1 - share) * other.score / best
            - share * max((similarity(terms[other.record.id], some) for some in before), default=0.0)
            for other in hits
            if other.record.id not in {earlier.record.id for earlier in chosen[:place]}
        }
        assert values[hit.record.id] == pytest.approx(max(values.values()), abs=1e-9)


@given(st.frozensets(st.sampled_from("abcd")), st.frozensets(st.sampled_from("abcd")))
def test_similarity_is_symmetric_and_one_only_for_the_same_words(one: frozenset[str], other: frozenset[str]) -> None:
    assert similarity(one, other) == similarity(other, one)
    assert 0 <= similarity(one, other) <= 1 + 1e-12
    assert (similarity(one, other) > 1 - 1e-9) == (one == other and bool(one))
