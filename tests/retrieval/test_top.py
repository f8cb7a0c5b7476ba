"""The largest of many numbers, and the index of hashed terms."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.postings import Postings, pack
from memory_core.retrieval.top import best, leading


@given(st.lists(st.integers(-3, 3), max_size=3_000), st.integers(1, 12))
def test_the_largest_and_their_equals_are_among_the_leading(numbers: list[int], count: int) -> None:
    values = np.array(numbers, np.float32)
    rows = leading(values, count).tolist()
    assert rows == sorted(set(rows))
    smallest = sorted(numbers, reverse=True)[:count][-1] if numbers else 0
    assert {row for row, number in enumerate(numbers) if number >= smallest} <= set(rows)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=600), st.integers(1, 12))
def test_the_best_are_the_largest_of_those_let_through_the_earlier_first(
    numbers: list[tuple[int, bool]], count: int
) -> None:
    values, mask = np.array([n for n, _ in numbers], np.float32), np.array([is_let for _, is_let in numbers], np.bool_)
    expected = sorted(np.flatnonzero(mask).tolist(), key=lambda row: (-values[row], row))[:count]
    assert best(values, mask, count).tolist() == expected
    assert best(values[mask], None, count).tolist() == [int(mask[:row].sum()) for row in expected]


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
        lengths += postings.extend(len(lengths), some).tolist()
    assert lengths == [len(terms) for terms in texts]
    for term in {term for terms in texts for term in terms} | {"absent"}:
        ((rows, counts),) = postings.of([term])
        found = dict(zip(rows.tolist(), counts.tolist(), strict=True))
        assert found == {row: n for row, terms in enumerate(texts) if (n := Counter(terms)[term])}
        assert rows.tolist() == sorted(found)
