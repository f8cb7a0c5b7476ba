"""The records that are hits, and questions for which nothing is relevant."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Draft, Memory
from memory_core.retrieval.cosine_scale import LEAST_SPREAD, unrelated
from memory_core.retrieval.dense import chance
from memory_core.retrieval.floor import FEWEST, SLACK, UNKNOWN_NAME, is_answered, stands_out


@given(st.integers(FEWEST, 100_000), st.floats(-5, 10))
def test_the_best_of_many_has_to_show_more_than_the_best_of_few(size: int, best: float) -> None:
    assert not is_answered(best, 10 * size) or is_answered(best, size)
    assert is_answered(chance(size) - SLACK + 1e-6, size)
    assert not is_answered(chance(size) - SLACK - 1e-6, size)


def test_a_name_that_nobody_mentioned_asks_for_more() -> None:
    least = chance(1_000) - SLACK
    assert is_answered(least, 1_000)
    assert not is_answered(least, 1_000, unknown_names=1)
    assert is_answered(least + UNKNOWN_NAME, 1_000, unknown_names=1)
    assert is_answered(least + 2 * UNKNOWN_NAME, 1_000, unknown_names=9)


def test_where_the_embedder_knows_no_word_any_word_that_matches_is_enough() -> None:
    assert not is_answered(0.5, 1_000)
    assert is_answered(0.5, 1_000, known=0.02)
    assert not is_answered(0.0, 1_000, known=0.0)
    assert not is_answered(9.0, 0)


def test_the_stronger_the_best_the_more_the_others_have_to_show() -> None:
    assert stands_out(np.array([3.0, 0.1, -0.9], np.float32)).tolist() == [True, True, False]
    assert stands_out(np.array([20.0, 0.1, 1.1], np.float32)).tolist() == [True, False, True]


def test_unrelated_texts_are_measured_in_pairs() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    found = unrelated(vectors)
    assert found.mean == pytest.approx(np.mean([0.0, 0.6, 0.8]))
    assert found.spread == pytest.approx(np.std([0.0, 0.6, 0.8]))
    assert unrelated(np.ones((3, 1), np.float32)).spread == LEAST_SPREAD


async def test_what_nobody_ever_spoke_about_finds_nothing() -> None:
    async with Memory(":memory:") as memory:
        ann = memory.bind(app="demo", user="ann")
        await ann.add_many(
            [Draft(f"{who} feeds the hens at {hour} o'clock") for who in ("Tom", "Ines") for hour in range(6, 18)]
        )
        assert await ann.search("Who feeds the hens?")
        assert await ann.search("poultry")
        assert not await ann.search("What did Caroline say about the submarine in Lisbon?")
        assert await ann.search("What did Caroline say about the submarine in Lisbon?", floor=False)
