"""Filters of `MemoryStore`: as the references where they agree, and with one meaning where they do not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memory_core import InvalidInputError
from memory_langchain import MemoryStore

VALUES: dict[str, dict[str, Any]] = {
    "one": {"n": 1, "t": "b", "tags": ["x", "y"], "in": {"deep": {"er": True}, "n": 5}, "none": None},
    "two": {"n": 2.5, "t": "a", "tags": [], "in": {"deep": {"er": False}}, "a.b": 1},
    "three": {"n": -1, "t": "c", "tags": ["x"], "a": {"b": 2}},
}


def found(store: Any, given: Any, query: str | None = None) -> list[str]:
    return sorted(item.key for item in store.search(("a",), filter=given, query=query))


def filled(store: Any) -> Any:
    for key, value in VALUES.items():
        store.put(("a",), key, value)
    return store


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"n": 1},
        {"n": 1.0},
        {"t": "b"},
        {"t": "b", "n": 2.5},
        {"tags": ["x", "y"]},
        {"tags": ("x",)},
        {"tags": []},
        {"n": {"$gt": 1}},
        {"n": {"$gte": 1, "$lt": 2.5}},
        {"n": {"$lte": -1}},
        {"t": {"$eq": "a"}},
        {"t": {"$ne": "a"}},
        {"missing": {"$ne": 1}},
        {"missing": 1},
        {"in": {"deep": {"er": True}}},
        {"in": {"$eq": {"deep": {"er": False}}}},
        {"a.b": 1},
        {"a": {"b": 2}},
    ],
    ids=repr,
)
def test_filters_find_what_langgraphs_store_finds(store: MemoryStore, given: Any) -> None:
    wanted = found(filled(InMemoryStore()), given)
    assert found(filled(store), given) == wanted
    assert found(store, given, "tea") == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"none": None}, ["one"]),  # the key is there; LangGraph's stores disagree with each other
        ({"missing": None}, []),
        ({"in": {"n": {"$gt": 4}}}, ["one"]),
        ({"n": True}, []),
        ({"in": {"deep": {"er": 1}}}, []),
        ({"missing": {"$gt": 1}}, []),
        ({"t": {"$gt": 1}}, []),
        ({"t": {"$gt": "a"}}, ["one", "three"]),
        ({"n": {"$lt": "b"}}, []),
        ({"in": {}}, []),
        ({"tags": {"$ne": ["x"]}}, ["one", "two"]),
        ({"in.n": {"$gt": 4}}, ["one"]),
        ({"in.deep.er": False}, ["two"]),
        ({"a.b": {"$in": [1, 2]}}, ["three", "two"]),
        ({"in.n": {"$ne": 5}}, ["three", "two"]),
        ({"$or": [{"in.n": 5}, {"a.b": 1}]}, ["one", "two"]),
        ({"n": {"$lt": math.inf}}, ["one", "three", "two"]),
        ({"n": {"$gt": -math.inf, "$between": [-1, 1]}}, ["one", "three"]),
        ({"t": {"$nin": ["a", "b"]}}, ["three"]),
        ({"none": {"$exists": True}}, ["one"]),
        ({"t": {"$like": "_"}, "tags": {"$exists": True}}, ["one", "three", "two"]),
        ({"$or": [{"t": "a"}, {"in": {"n": 5}}]}, ["one", "two"]),
        ({"$and": [{"t": "a"}, {"in": {"n": 5}}]}, []),
        ({"$not": {"t": {"$in": ["a", "c"]}}}, ["one"]),
        ({"in": {"$not": {"n": 5}, "deep": {"er": False}}}, ["two"]),
    ],
    ids=repr,
)
def test_where_the_references_fail_or_disagree_a_filter_has_one_meaning(
    store: MemoryStore, given: Any, wanted: list[str]
) -> None:
    assert found(filled(store), given) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": {"$near": [1]}}, r"\$near"),
        ({"n": {"$gt": 1, "x": 2}}, "mixes"),
        ({"n": {"$gt": None}}, "no order"),
        ({"n": {"$eq": math.nan}}, "JSON"),
        ({"t": {"$like": 5}}, "like takes a text"),
        ({"n": {1}}, "JSON"),
        ({1: 1}, "strings"),
        ("n", "mapping"),
    ],
    ids=repr,
)
def test_a_filter_that_means_nothing_is_refused(store: MemoryStore, given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        store.search(("a",), filter=given)


@pytest.mark.parametrize("value", [1, "b", True, None, [1], {"x": 1}], ids=repr)
def test_only_numbers_and_strings_are_ordered(store: MemoryStore, value: Any) -> None:
    store.put(("a",), "k", {"v": value})
    is_number, is_string = type(value) is int, isinstance(value, str)
    for low, high, is_ordered in ((-9, 9, is_number), ("", "c", is_string)):
        for given in ({"$gt": low}, {"$gte": low}, {"$lt": high}, {"$lte": high}, {"$between": [low, high]}):
            assert found(store, {"v": given}) == (["k"] if is_ordered else [])
    if not is_number and not is_string:
        with pytest.raises(InvalidInputError, match="no order"):
            store.search(("a",), filter={"v": {"$gt": value}})


def test_a_filter_applies_before_the_limit(store: MemoryStore) -> None:
    for number in range(30):
        store.put(("a",), str(number), {"text": "tea", "even": number % 2 == 0})
    for query in (None, "tea"):
        assert len(store.search(("a",), query=query, filter={"even": True}, limit=15)) == 15
        assert len(store.search(("a",), query=query, filter={"even": True}, limit=10, offset=10)) == 5
