"""Conditions from JSON, from the query of an address, and from Python: found, or refused by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import AnyOf, Draft, FieldCondition, InvalidInputError, Link, Memory, Where, data_conditions, run_sync
from memory_core.app.json_options import json_object
from memory_core.app.serve.conditions import pairs_of, query_of, where_in
from memory_core.where.checks import check_where
from memory_core.where.conditions import COMPARISONS, DataCondition
from tests.fuzz.mutating import HOSTILE, changed_bytes, changed_json, each, insist_on_sentence, kept, mutants

pytestmark = pytest.mark.uncovered

SUBJECT = "conditions"


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """Some memories of Ann, and one of Bob that has everything that hers have."""
    with Memory(":memory:", embedder=None) as memory:
        data: Any = {"n": 10**25, "s": "\ud800", "": {"": [1, None]}, "a\0b": "\0", "city": "Oslo", "$gt": 1}
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        first = run_sync(ann.add, Draft("Ann drinks tea", data=data, tags=("x",), source_key="k", session="s"))
        run_sync(ann.add, Draft("the tide turns", links=[Link("follows", first.id)], collection="a/b", author="Ann"))
        run_sync(bob.add, Draft("Bob drinks tea", data=data, tags=("x",), source_key="k", session="s", collection="a"))
        yield memory


def asked(memory: Memory, where: Where) -> None:
    """Every read with these conditions: they never reach what is Bob's."""
    ann = memory.bind(user="ann")
    listed = {record.id for record in run_sync(ann.list, where=where).records}
    for mode in ("lexical", "substring"):
        assert {hit.record.id for hit in run_sync(ann.search, "tea", where=where, mode=mode)} <= listed
    assert all("Bob" not in record.text for record in run_sync(ann.list, where=where).records)
    run_sync(ann.collections, where)


def check_json(memory: Memory, content: bytes) -> None:
    try:
        where = check_where(Where.from_dict(json_object("--where", content.decode(errors="surrogateescape"))))
    except InvalidInputError as error:
        insist_on_sentence(error)
    else:
        asked(memory, where)
        assert check_where(Where.from_dict(where.to_dict())) == where
    try:
        given = json.loads(content)
        matching = data_conditions(given)
        where = check_where(Where(matching=matching))
    except InvalidInputError as error:
        insist_on_sentence(error)
    except (ValueError, RecursionError):
        return  # no JSON, which whoever calls `data_conditions` has read
    else:
        asked(memory, where)


def check_query(memory: Memory, query: str) -> None:
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    try:
        where = where_in(pairs)
    except InvalidInputError as error:
        insist_on_sentence(error)
    else:
        asked(memory, where)
        again = where_in(parse_qsl(query_of(pairs_of(where)).removeprefix("?"), keep_blank_values=True))
        assert again == where or "\ud800" in repr(where) or "\\ud" in repr(where)


def as_query(choice: random.Random, content: bytes) -> bytes:
    """The JSON of conditions as the query of an address, before or after it is changed."""
    changed = changed_json(choice, content)
    try:
        given = json.loads(changed)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return changed_bytes(choice, urlencode({"matching": changed, "kinds": "note"}).encode())
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        for one in value if isinstance(value, list) and name != "matching" else [value]:
            text = one if isinstance(one, str) else _dumped(one)
            pairs.append((name, text))
    made = "&".join(f"{quote(name, errors='replace')}={quote(text, errors='replace')}" for name, text in pairs).encode()
    return changed_bytes(choice, made) if choice.random() < 0.3 else made


def _dumped(value: object) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 400


def test_the_kept_conditions(memory: Memory) -> None:
    each(SUBJECT, (content for _, content in kept(SUBJECT)), ".json", lambda content: check_json(memory, content))
    choice = random.Random(3)
    for _, content in kept(SUBJECT):
        check_query(memory, as_query(choice, content).decode(errors="replace"))


@pytest.mark.parametrize("count", [150, pytest.param(60_000, marks=pytest.mark.torture)])
def test_changed_conditions(memory: Memory, count: int) -> None:
    for change in (changed_json, changed_bytes):
        made = mutants(kept(SUBJECT), count // 2, change)
        assert each(SUBJECT, made, ".json", lambda content: check_json(memory, content)) == count // 2


@pytest.mark.parametrize("count", [80, pytest.param(30_000, marks=pytest.mark.torture)])
def test_changed_queries_of_addresses(memory: Memory, count: int) -> None:
    made = mutants(kept(SUBJECT), count, as_query)
    each(SUBJECT, made, ".txt", lambda content: check_query(memory, content.decode(errors="replace")))


ODD = st.sampled_from([*HOSTILE, object(), b"x", (1,), {1}, {1: 2}, {1: 2, "a": 3}, range(3), int, 1j, Where()])
KEYS = st.sampled_from(["a", "", "$gt", "$or", "$not", "$in", "\ud800", 1, None, (1, 2)])
ANYTHING = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=4
)
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
NAMES = st.sampled_from(sorted(Where().to_dict()))
FIELDS = st.sampled_from(["created_at", "importance", "kind", "tags", "text", 1, None])
CONDITION: st.SearchStrategy[Any] = (
    st.builds(DataCondition, ANYTHING | st.just(("n",)), st.sampled_from(COMPARISONS) | ODD, ANYTHING)
    | st.builds(FieldCondition, FIELDS, st.sampled_from(COMPARISONS) | ODD, ANYTHING)
    | ODD
)


def refused_or_asked(memory: Memory, make: Callable[[], Where]) -> None:
    try:
        where = check_where(make())
    except InvalidInputError as error:
        insist_on_sentence(error)
    else:
        asked(memory, where)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(NAMES, ANYTHING, max_size=2), st.lists(CONDITION, max_size=2))
def test_conditions_from_python(memory: Memory, values: dict[str, Any], conditions: list[Any]) -> None:
    refused_or_asked(memory, lambda: Where(**values))
    refused_or_asked(memory, lambda: Where(matching=conditions))
    refused_or_asked(memory, lambda: Where.from_dict(values))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(ANYTHING)
def test_filters_from_python(memory: Memory, given_filter: Any) -> None:
    refused_or_asked(memory, lambda: Where(matching=data_conditions(given_filter)))
    refused_or_asked(memory, lambda: Where.from_dict(given_filter))


def test_conditions_that_contain_themselves_are_refused(memory: Memory) -> None:
    for field in ("created_at", "importance", "kind"):
        for op in COMPARISONS:
            refused_or_asked(memory, lambda field=field, op=op: Where(matching=[FieldCondition(field, op, ENDLESS)]))  # type: ignore[misc]
            refused_or_asked(memory, lambda op=op: Where(matching=[DataCondition(("n",), op, ENDLESS)]))  # type: ignore[misc]
    refused_or_asked(memory, lambda: Where(matching=[AnyOf(ENDLESS)]))
    refused_or_asked(memory, lambda: Where.from_dict({"matching": ENDLESS}))


def test_json_that_is_nested_deeply_is_refused_for_that_reason() -> None:
    inner: dict[str, Any] = {"field": "kind", "op": "eq", "value": "note"}
    for _ in range(300):
        inner = {"any_of": [inner]}
    with pytest.raises(InvalidInputError, match="nested too deeply"):
        Where.from_dict({"matching": [inner]})
