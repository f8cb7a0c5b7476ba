"""A draft that is too large to be stored is shortened where it is largest, and nothing that tells it apart is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import Json
from memory_core.values.json_checks import fits_data
from memory_core.values.limits import MAX_DATA_BYTES
from memory_core.values.shortening import SMALL_BYTES, is_shortened, shortened_data, shortened_text

MIB: Final = 1 << 20
SMALL: Final = "s" * (SMALL_BYTES - 20)


def large(size: int) -> st.SearchStrategy[Any]:
    texts = st.integers(0, size).map(lambda length: "ü\n\ud800"[length % 3] * length)
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
    return st.recursive(
        leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner), max_leaves=9
    )


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=20)
@given(st.dictionaries(st.text(max_size=9), large(3 * MAX_DATA_BYTES)))
def test_data_of_any_size_fits_when_it_is_shortened(data: dict[str, Json]) -> None:
    short = shortened_data(data)
    assert fits_data(short)
    if fits_data(data):
        assert short == data


MANY: Final[dict[str, Callable[[], dict[str, Json]]]] = {
    "numbers": lambda: {"many": list(range(600_000))},
    "names": lambda: {"many": {str(number): number for number in range(300_000)}},
    "calls": lambda: {"many": [{"id": str(number), "args": {}} for number in range(200_000)]},
    "long names": lambda: {"k" * 2 * MIB: 1, "l" * 3 * MIB: 2},
    "a long number": lambda: {"number": 7**4_000},
    "texts": lambda: {f"{number}": "x" * 100_000 for number in range(1_000)},
}
"""Made when they are needed: every worker would keep them."""


@pytest.mark.slow
@pytest.mark.parametrize("make", MANY.values(), ids=MANY)
def test_data_of_very_many_values_fits_when_it_is_shortened(make: Callable[[], dict[str, Json]]) -> None:
    assert fits_data(shortened_data(make()))


def test_data_of_any_depth_fits_when_it_is_shortened() -> None:
    deep: Json = "x"
    for _ in range(400):
        deep = {"inner": [deep]}
    short = shortened_data({"id": SMALL, "deep": deep})
    assert fits_data(short)
    assert short["id"] == SMALL


def test_only_the_largest_parts_are_shortened() -> None:
    call: Json = {"id": SMALL, "args": {"path": "a.txt", "body": "b" * 3 * MIB}}
    data: dict[str, Json] = {"role": "tool", "content": ["c" * MAX_DATA_BYTES, "short"], "calls": [call], "n": 1}
    short: Any = shortened_data(data)
    assert (short["role"], short["n"], short["content"][1]) == ("tool", 1, "short")
    assert (short["calls"][0]["id"], short["calls"][0]["args"]["path"]) == (SMALL, "a.txt")
    cut = short["content"][0], short["calls"][0]["args"]["body"]
    assert all(map(is_shortened, cut))
    assert sum(map(len, cut)) > 0.99 * MAX_DATA_BYTES


def test_a_text_says_how_long_it_was() -> None:
    text = "x" * 2_000
    assert shortened_text(text, 2_000) == text
    short = shortened_text(text, 1_000)
    assert len(short) == 1_000
    assert short.endswith("[… 2,000 characters: too large to be remembered]")
    assert is_shortened(short)
    assert not is_shortened(text)
    assert not is_shortened(7)
