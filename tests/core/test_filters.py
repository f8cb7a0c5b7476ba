"""Conditions: what every store finds is what `matching` says, whatever the records and whatever is asked."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import (
    AllOf,
    AnyOf,
    BoundMemory,
    DataCondition,
    Draft,
    FieldCondition,
    InvalidInputError,
    Link,
    Memory,
    NoneOf,
    Patch,
    Where,
    data_conditions,
    run_sync,
)
from memory_core.models import ROLES
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import Ticks
from memory_core.values.limits import MAX_PATTERN_CHARS
from memory_core.where.checks import check_where
from memory_core.where.conditions import NAME_FIELDS, NUMBER_FIELDS, TIME_FIELDS
from memory_core.where.meaning import has_keyword, matcher, satisfies
from memory_core.where.patterns import like
from memory_core.where.where import ANY_STATE

NOW = Ticks().now
DAYS = st.integers(-2, 2).map(lambda days: NOW + timedelta(days=days))
MAYBE_DAYS = st.none() | DAYS
WORDS = ["tea", "teapot", "Green", "お茶", "café"]
KEYS = st.sampled_from(["a", "b", "a/b"])
MAYBE_KEYS = st.none() | KEYS
UNITS = st.sampled_from([0.0, 0.5, 1.0])
VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.5, 1.0, "x", "y"])
NESTED = VALUES | st.dictionaries(st.sampled_from("pq"), VALUES, max_size=2) | st.lists(VALUES, max_size=2)
DATA = st.dictionaries(st.sampled_from("pq"), NESTED, max_size=2)
LINKS = st.builds(Link, st.sampled_from(["confirmed_by", "follows"]), KEYS)
TAGS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True).map(tuple)
PATHS = st.lists(st.sampled_from(["p", "q", 0]), min_size=1, max_size=2).map(tuple)

ORDERINGS = st.sampled_from(["gt", "gte", "lt", "lte"])
EQUALITIES = st.sampled_from(["eq", "ne"])

DRAFTS = st.builds(
    Draft,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    role=st.none() | st.sampled_from(ROLES),
    kind=st.sampled_from(["note", "fact"]),
    author=MAYBE_KEYS,
    data=DATA,
    tags=TAGS,
    importance=UNITS,
    confidence=UNITS,
    emotion=MAYBE_KEYS,
    occurred_at=MAYBE_DAYS,
    expires_at=MAYBE_DAYS,
    valid_from=MAYBE_DAYS,
    valid_to=MAYBE_DAYS,
    links=st.lists(LINKS, max_size=2),
    agent=MAYBE_KEYS,
    session=MAYBE_KEYS,
    collection=MAYBE_KEYS,
)


def either(*ops: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(ops)


def pairs_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, min_size=2, max_size=2)


NUMBERS = st.sampled_from([0, 1, 0.5])
ON_DATA = st.one_of(
    st.builds(DataCondition, PATHS, EQUALITIES, NESTED),
    st.builds(DataCondition, PATHS, either("in", "nin"), st.lists(NESTED, max_size=3)),
    st.builds(DataCondition, PATHS, ORDERINGS, NUMBERS | st.just("x")),
    st.builds(DataCondition, PATHS, st.just("between"), pairs_of(NUMBERS) | st.just(["x", "y"])),
    st.builds(DataCondition, PATHS, st.just("starts_with"), st.sampled_from(["", "x", "xy"])),
    st.builds(DataCondition, PATHS, st.just("like"), st.text("x%_y", max_size=4)),
    st.builds(DataCondition, PATHS, st.just("exists"), st.booleans()),
)
ON_FIELDS = st.one_of(
    st.builds(FieldCondition, st.sampled_from(TIME_FIELDS), ORDERINGS, DAYS),
    st.builds(FieldCondition, st.sampled_from(TIME_FIELDS), EQUALITIES, MAYBE_DAYS),
    st.builds(FieldCondition, st.sampled_from(TIME_FIELDS), st.just("between"), pairs_of(DAYS)),
    st.builds(FieldCondition, st.sampled_from(NUMBER_FIELDS), ORDERINGS, UNITS),
    st.builds(FieldCondition, st.sampled_from(NUMBER_FIELDS), either("in", "nin"), st.lists(UNITS, max_size=2)),
    st.builds(FieldCondition, st.sampled_from([*NAME_FIELDS, "tags"]), EQUALITIES, MAYBE_KEYS | st.just("x")),
    st.builds(
        FieldCondition,
        st.sampled_from([*NAME_FIELDS, "tags"]),
        either("in", "nin"),
        st.lists(MAYBE_KEYS | st.just("x"), max_size=2),
    ),
    st.builds(
        FieldCondition, st.sampled_from([*NAME_FIELDS, "tags"]), st.just("starts_with"), st.sampled_from(["", "a", "x"])
    ),
    st.builds(
        FieldCondition,
        st.sampled_from([*NAME_FIELDS, *NUMBER_FIELDS, *TIME_FIELDS, "tags"]),
        st.just("exists"),
        st.booleans(),
    ),
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    ON_DATA | ON_FIELDS,
    lambda inner: st.builds(
        lambda group, some: group(some), st.sampled_from([AnyOf, AllOf, NoneOf]), st.lists(inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "kinds": st.lists(st.sampled_from(["note", "fact", "other"]), max_size=2),
    "roles": st.lists(st.sampled_from(ROLES), max_size=2),
    "tiers": st.lists(st.sampled_from(["raw", "high"]), max_size=1),
    "tags_any": TAGS,
    "tags_all": TAGS,
    "keywords": st.lists(st.sampled_from(["TEA", "茶", "cafe\u0301", "green tea", "pot"]), max_size=2),
    "author": MAYBE_KEYS,
    "agent": MAYBE_KEYS,
    "session": MAYBE_KEYS,
    "collection": MAYBE_KEYS,
    "under": MAYBE_KEYS,
    "emotion": MAYBE_KEYS,
    "min_importance": UNITS,
    "min_confidence": UNITS,
    "since": DAYS,
    "until": DAYS,
    "as_of": DAYS,
    "links": st.lists(LINKS, max_size=2),
    "states": st.lists(st.sampled_from(["active", "archived"]), min_size=1, unique=True),
    "left": st.sampled_from([True, False, None]),
    "data": st.dictionaries(st.sampled_from("pq"), VALUES, max_size=1),
    "matching": st.lists(CONDITIONS, max_size=2),
    "ids": st.lists(st.sampled_from(["0", "1", "2", "9"]), max_size=3),
}
WHERES = st.lists(st.sampled_from(sorted(FIELDS)), max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names}).map(lambda values: Where(**values))
)


def check(ann: BoundMemory, drafts: list[Draft], wheres: list[Where]) -> None:
    run_sync(ann.add_many, [replace(draft, id=str(n), expires_at=None) for n, draft in enumerate(drafts)])
    run_sync(ann.postpone, {str(n): draft.expires_at for n, draft in enumerate(drafts)})
    if run_sync(ann.get, "0"):
        run_sync(ann.update, "0", Patch(state="archived"))
    if run_sync(ann.get, "1"):
        run_sync(ann.update, "1", Patch(left=True))
    records = run_sync(ann.list, where=ANY_STATE, limit=100).records
    assert {record.id for record in records} == {
        str(n) for n, draft in enumerate(drafts) if draft.expires_at is None or draft.expires_at > NOW
    }
    for where in wheres:
        expected = {record.id for record in records if satisfies(record, check_where(where), NOW)}
        page = run_sync(ann.list, where=where, limit=100)
        assert {record.id for record in page.records} == expected, where
        for mode in ("lexical", "substring"):
            every = run_sync(ann.search, "tea", mode=mode, limit=100, where=where)
            assert {hit.record.id for hit in every} <= expected, where
            found = run_sync(ann.search, "tea", mode=mode, limit=1, where=where)
            assert [hit.record.id for hit in found] == [hit.record.id for hit in every[:1]], where
            wanted = {record.id for record in records if "tea" in record.text} & expected
            if mode == "substring":
                assert {hit.record.id for hit in every} == wanted, where


@given(st.lists(DRAFTS, min_size=1, max_size=5), st.lists(WHERES, min_size=1, max_size=6))
def test_a_file_finds_exactly_what_satisfies_the_conditions(drafts: list[Draft], wheres: list[Where]) -> None:
    with Memory(":memory:", embedder=None, clock=Ticks()) as memory:
        check(memory.bind(user="ann"), drafts, wheres)


@settings(max_examples=8)
@given(st.lists(DRAFTS, min_size=1, max_size=5), st.lists(WHERES, min_size=1, max_size=6))
def test_qdrant_finds_exactly_what_satisfies_the_conditions(drafts: list[Draft], wheres: list[Where]) -> None:
    clock = Ticks()
    with Memory(QdrantStore(":memory:", embedder=None, clock=clock), clock=clock) as memory:
        check(memory.bind(user="ann"), drafts, wheres)


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
