"""The largest of many numbers, and the index of hashed terms."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.arrays import best, leading
from memory_core.retrieval.postings import Postings
from memory_core.retrieval.term_hashes import pack


@given(st.lists(st.integers(-3, 3), max_size=3_000), st.integers(1, 12))
def test_the_largest_and_their_equals_are_among_the_leading(numbers: list[int], count: int) -> None:
    values = np.array(numbers, np.float32)
    rows = leading(values, count).tolist()
    assert rows == sorted(set(rows))
    smallest = sorted(numbers, reverse=True)[:count][-1] if numbers else 0
    assert {row for row, number in enumerate(numbers) if number >= smallest} <= set(rows)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(0, 9)), max_size=600), st.integers(1, 12))
def test_the_best_are_the_largest_and_of_equals_the_earlier_ones(
    numbers: list[tuple[int, int, int]], count: int
) -> None:
    values = np.array([value for value, _, _ in numbers], np.float32)
    times = np.array([time for _, time, _ in numbers], np.int64)
    keys = np.array([key for _, _, key in numbers], np.int64)
    expected = sorted(range(len(numbers)), key=lambda row: (-values[row], times[row], keys[row], row))[:count]
    assert best(values, times, keys, count).tolist() == expected


def test_what_numbers_lose_when_they_are_added_up_decides_no_order() -> None:
    values = np.array([0.30000001, 0.3, 0.29999998], np.float32)
    assert best(values, np.zeros(3, np.int64), np.array([2, 3, 1]), 3).tolist() == [2, 0, 1]


def test_few_of_many_are_leading() -> None:
    values = np.random.default_rng(3).standard_normal(100_000, np.float32)
    assert len(leading(values, 10)) < 200


@given(st.lists(st.lists(st.text("abc", min_size=1, max_size=3), max_size=8), max_size=30), st.randoms())
def test_an_index_grown_in_any_steps_knows_every_text(texts: list[list[str]], dice: random.Random) -> None:
    postings = Postings()
    lengths: list[float] = []
    while len(lengths) < len(texts):
        stop = len(lengths) + dice.randint(1, 8)
        some = [pack(terms) for terms in texts[len(lengths) : stop]]
        sizes = np.array([len(each) for each in some], np.int64)
        lengths += postings.extend(len(lengths), b"".join(some), sizes).tolist()
    assert lengths == [len(terms) for terms in texts]
    for term in {term for terms in texts for term in terms} | {"absent"}:
        ((rows, counts),) = postings.of([term])
        found = dict(zip(rows.tolist(), counts.tolist(), strict=True))
        assert found == {row: n for row, terms in enumerate(texts) if (n := Counter(terms)[term])}
        assert rows.tolist() == sorted(found)
