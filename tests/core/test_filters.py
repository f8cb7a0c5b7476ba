"""Conditions: what every store finds is what `matching` says, whatever the records and whatever is asked."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import (
    DataCondition,
    InvalidInputError,
    Where,
    data_conditions,
)
from memory_core.values.limits import MAX_PATTERN_CHARS
from memory_core.where.checks import check_where
from memory_core.where.meaning import has_keyword, matcher
from memory_core.where.patterns import like


def test_keywords_are_whole_words_where_words_are_spaced() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("concatenate", "cat", False),
        ("the cat, asleep", "CAT", True),
        ("cat_tail", "cat", False),
        ("cat's", "cat", True),
        ("毎日お茶を飲みます", "茶", True),
        ("ดื่มชาทุกวัน", "ชา", True),
        ("шкаф", "каф", False),
        ("a cafe\u0301 nearby", "CAFÉ", True),
        ("cafe nearby", "café", False),
        ("STRASSE", "straße", True),
        ("green  tea", "green tea", False),
        ("green tea", "green tea", True),
        ("C++ and C#", "c++", True),
    ]
    for text, keyword, holds in cases:
        for form in ("NFC", "NFD"):
            assert has_keyword(unicodedata.normalize(form, text), [keyword]) is holds, (text, keyword, form)


@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_a_keyword_between_spaces_is_found_whatever_it_is(text: str, keyword: str) -> None:
    assert has_keyword(f"{text} {keyword.strip()} {text}", [keyword])
    assert has_keyword(text, None)
    assert not has_keyword(text, [])


def holds(data: object, conditions: list[Any]) -> bool:
    return all(matcher(condition)(SimpleNamespace(data=data)) for condition in conditions)


WANTED: dict[str, Callable[[int], Any]] = {
    "$in": lambda value: [value, 7],
    "$nin": lambda value: [value, 7],
    "$between": lambda value: (value, 7),
    "$exists": lambda value: True,
}
"""The values that an operator is asked with, where they are no numbers."""
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda held, wanted: held > wanted,
    "$gte": lambda held, wanted: held >= wanted,
    "$lt": lambda held, wanted: held < wanted,
    "$lte": lambda held, wanted: held <= wanted,
    "$eq": lambda held, wanted: held == wanted,
    "$ne": lambda held, wanted: held != wanted,
    "$in": lambda held, wanted: held in wanted,
    "$nin": lambda held, wanted: held not in wanted,
    "$between": lambda held, wanted: min(wanted) <= held <= max(wanted),
    "$exists": lambda held, wanted: True,
}


@given(
    st.dictionaries(st.sampled_from("pqr"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("pqr"), st.dictionaries(st.sampled_from(sorted(OPERATORS)), st.integers(0, 3))),
)
def test_a_filter_means_what_its_operators_say(data: dict[str, int], asked: dict[str, dict[str, int]]) -> None:
    given_filter = {
        key: {name: WANTED[name](value) if name in WANTED else value for name, value in tests.items()}
        for key, tests in asked.items()
        if tests
    }
    expected = all(
        (key in data and OPERATORS[name](data[key], wanted)) or (key not in data and name in {"$ne", "$nin"})
        for key, tests in given_filter.items()
        for name, wanted in tests.items()
    )
    assert holds(data, data_conditions(given_filter)) is expected
    within = data_conditions({"outer": given_filter}) if given_filter else []
    assert holds({"outer": data}, within) is expected


@given(st.text("ab%\n", max_size=8), st.text("ab%_", max_size=6))
def test_a_pattern_means_what_it_means_in_sql(text: str, pattern: str) -> None:
    expression = "".join({"%": "(?s:.*)", "_": "(?s:.)"}.get(one, one) for one in pattern)
    assert holds({"t": text}, data_conditions({"t": {"$like": pattern}})) is bool(re.fullmatch(expression, text))
    assert not holds({"t": 5}, data_conditions({"t": {"$like": "%"}}))


def test_a_pattern_is_decided_in_time_however_many_wildcards_it_has() -> None:
    assert not holds({"t": "a" * 100_000}, data_conditions({"t": {"$like": "%a" * 50 + "b%a"}}))


def test_every_number_is_below_infinity() -> None:
    for data, name, expected in [(5, "$lt", True), (5, "$lte", True), (5, "$gt", False), ("x", "$lt", False)]:
        assert holds({"n": data}, data_conditions({"n": {name: math.inf}})) is expected
    assert holds({"n": -5}, data_conditions({"n": {"$gt": -math.inf}}))


def test_a_filter_that_makes_no_sense_is_refused_by_name() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = endless
    filters: list[tuple[Any, str]] = [
        (endless, "contains itself"),
        ({"a": {"$near": 1}}, r"knows \$eq, .*\$not, each behind a key, not '\$near'"),
        ({"a": {"$gt": 1, "b": 2}}, r"mixes operators and keys at \('a',\)"),
        ([("a", 1)], "is a mapping"),
        ({1: "a"}, "keys of a filter are strings"),
        ({"$gt": 1}, r"names a key first, .* not '\$gt'"),
        ({"$or": {"a": 1}}, r"\$or takes a list"),
        ({"$or": [{"$gt": 1}]}, r"each behind a key, not '\$gt'"),
        ({"$or": [1]}, "1 is not a filter"),
        ({"a": {"$nor": ["x"]}}, "'x' is not a filter"),
        ({"a": {"$and": [{"$gt": 1}, ["x"]]}}, "is not a filter"),
        ({"a": {"$not": "x"}}, r"\$not takes a filter or a list of filters"),
        ({"a": {"$not": []}}, r"\$not takes a filter or a list of filters"),
        ([], "is a mapping"),
    ]
    for given_filter, reason in filters:
        with pytest.raises(InvalidInputError, match=reason):
            data_conditions(given_filter)
    wheres: list[tuple[Any, str]] = [
        (Where(matching=[DataCondition(("a",), "in", "abc")]), "in takes an array"),
        (Where(keywords=[" "]), "keywords is blank"),
        (Where(keywords=["tea", 1]), "keywords"),  # type: ignore[list-item]  # that is the point
    ]
    for where, reason in wheres:
        with pytest.raises(InvalidInputError, match=reason):
            check_where(where)


@given(pattern=st.text("x%_y", max_size=8), text=st.text("xy\nz", max_size=10))
def test_a_pattern_is_what_its_regular_expression_is(pattern: str, text: str) -> None:
    written = "".join({"%": ".*", "_": "."}.get(char, char) for char in pattern)
    assert like(pattern)(text) == (re.fullmatch(written, text, re.DOTALL) is not None)


def test_a_pattern_has_a_limited_length() -> None:
    check_where(Where(matching=[DataCondition(("text",), "like", "_" * MAX_PATTERN_CHARS)]))
    with pytest.raises(InvalidInputError, match="a pattern has 513 characters; at most 512 are allowed"):
        check_where(Where(matching=[DataCondition(("text",), "like", "_" * (MAX_PATTERN_CHARS + 1))]))
