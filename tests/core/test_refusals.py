"""The arguments that a handle refuses by name, whatever its store: no store sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memory_core import (
    AllOf,
    AnyOf,
    BoundMemory,
    DataCondition,
    Draft,
    FieldCondition,
    InvalidInputError,
    Memory,
    Patch,
    Scope,
    ScopeError,
    Where,
    run_sync,
)
from memory_core.adapting import complete, owned_by
from memory_core.operation import OPERATIONS
from memory_core.records.draft_to_record import complete_items
from memory_core.testing.base import add, everything
from memory_core.where.checks import check_where
from memory_core.where.conditions import Condition

SCOPE = Scope("app", "ann")
NOW = datetime(2024, 5, 6, tzinfo=UTC)
NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001  (that is the point)
HALF = "tea \ud83c"
"""Ends in a lone surrogate, as broken JSON escapes and cut UTF-16 do."""
HALVED = r" contains '\\ud83c' at position 4"
NO_ZONE = " 2024-01-01T00:00:00 has no time zone"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="app", user="ann")


def draft(**given: Any) -> Any:
    """A draft, whatever its fields."""
    return Draft(**{"text": "x", **given})


def where(**given: Any) -> Where:
    """Conditions, whatever they are."""
    return Where(**given)


def on(*conditions: Any) -> Where:
    """Conditions on values and fields, whatever they are."""
    return Where(matching=conditions)


def nested(levels: int) -> Condition:
    tree: Condition = FieldCondition("rev", "gte", 0)
    for _ in range(levels):
        tree = AllOf([tree])
    return tree


DRAFTS: list[tuple[str, Any]] = [
    ("nothing to remember", draft(text="")),
    ("nothing to remember", draft(text=" \n\t ")),
    ("kind", draft(kind="")),
    ("kind", draft(kind="k" * 513)),
    ("importance", draft(importance=1.01)),
    ("importance", draft(importance=math.nan)),
    ("confidence", draft(confidence=True)),
    ("tags", draft(tags="tag")),
    ("a tag", draft(tags=(1,))),
    ("257 tags", draft(tags=[str(n) for n in range(257)])),
    ("tier must be one of", draft(tier="highest")),
    ("role must be one of", draft(role=["user"])),
    ("author", draft(author=" ")),
    ("id", draft(id="")),
    ("session must not contain a NUL", draft(session="a\0b")),
    ("occurred_at", draft(occurred_at="yesterday")),
    (r"occurred_at .* years 1 to 9999", draft(occurred_at=datetime.min.replace(tzinfo=timezone(timedelta(hours=5))))),
    *((f"{name}{NO_ZONE}", draft(**{name: NAIVE})) for name in ("occurred_at", "expires_at", "valid_from", "valid_to")),
    *((f"{name}{HALVED}", draft(**{name: HALF})) for name in ("text", "author", "kind", "session", "source_key", "id")),
    (f"a tag{HALVED}", draft(tags=(HALF,))),
    *(
        ("data", draft(data=data))
        for data in ({1: "a"}, {"a": (1, 2)}, {"a": {1, 2}}, {"a": math.nan}, {"a": b"x"}, [1], "text", None)
    ),
    ("Draft", {"text": "x"}),
    ("Draft", None),
]

WHERES: list[tuple[str, Where]] = [
    ("kinds must be a sequence", where(kinds="fact")),
    ("one of tags_any must be a string", where(tags_any=(1,))),
    ("tags_all must be a sequence", where(tags_all="red")),
    ("ids must be a sequence", where(ids="one")),
    ("tiers must be some of", where(tiers=("lowest",))),
    ("states must be some of", where(states=("asleep",))),
    ("left must be True or False", where(left="both")),
    ("author must be a string", where(author=5)),
    ("session must be a string", where(session=object())),
    (f"session{HALVED}", where(session=HALF)),
    ("min_importance", where(min_importance="high")),
    ("min_confidence", where(min_confidence=math.nan)),
    ("since must be a datetime", where(since="2024-01-01")),
    (f"since{NO_ZONE}", where(since=NAIVE)),
    (f"until{NO_ZONE}", where(until=NAIVE)),
    ("data can be filtered by plain values only", where(data={"a": [1]})),
    ("a FieldCondition compares created_at", on(FieldCondition("text", "eq", "tea"))),  # type: ignore[arg-type]
    ("a FieldCondition compares created_at", on(FieldCondition([], "eq", "tea"))),  # type: ignore[arg-type]
    ("access_count is compared with a number", on(FieldCondition("access_count", "gt", 10**5_000))),
    ("rev is compared with a number", on(FieldCondition("rev", "gt", "1"))),
    ("gt does not compare author", on(FieldCondition("author", "gt", "Ann"))),
    ("path must have keys", on(DataCondition((), "eq", 1))),
    ("not of -1", on(DataCondition(("a", -1), "eq", 1))),
    ("path must have keys, .* not 'ab'", on(DataCondition("ab", "eq", 1))),  # type: ignore[arg-type]
    ("op must be one of eq, .* not 'near'", on(DataCondition(("a",), "near", 1))),  # type: ignore[arg-type]
    ("like takes a text", on(DataCondition(("a",), "like", 1))),
    ("None has no order", on(DataCondition(("a",), "gt", None))),
    ("has no order", on(DataCondition(("a",), "lt", [1]))),
    ("must be JSON", on(DataCondition(("a",), "eq", {1, 2}))),
    ("matching takes DataCondition", on({"a": 1})),
    ("author has 513 characters; at most 512", where(author="x" * 513)),
    ("one of ids has 513 characters", where(ids=["x" * 513])),
    ("data has 101 conditions; at most 100", where(data={str(n): n for n in range(101)})),
    ("matching has 104 conditions", on(*[AnyOf([FieldCondition("rev", "gte", 0)] * 51)] * 2)),
    ("nin has 1002 values", on(*[FieldCondition("id", "nin", ["x"] * 501)] * 2)),
    ("the value of a condition has 1000", on(DataCondition(("a",), "eq", "x" * 100_001))),
    ("matching has 1200.* bytes", on(*[DataCondition(("a",), "eq", "x" * 60_000)] * 2)),
    ("path has 201 steps", on(DataCondition(("a",) * 201, "eq", 1))),
    ("a step of a path has 513 characters", on(DataCondition(("a" * 513,), "eq", 1))),
    ("11 levels of groups", on(nested(11))),
]


@pytest.mark.parametrize(("reason", "wrong"), DRAFTS)
def test_an_invalid_draft_is_refused_by_name(reason: str, wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        complete(wrong, SCOPE, NOW)


@pytest.mark.parametrize(("reason", "wrong"), WHERES)
def test_an_invalid_condition_is_refused_by_name(reason: str, wrong: Where) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        check_where(wrong)


def test_every_operation_with_conditions_checks_them(ann: BoundMemory) -> None:
    record, wrong = run_sync(ann.add, "tea"), where(kinds="note")
    for call in (
        lambda: run_sync(ann.list, where=wrong),
        lambda: run_sync(ann.search, "tea", where=wrong),
        lambda: run_sync(ann.search, "tea", where=wrong, mode="substring"),
        lambda: run_sync(ann.delete_where, wrong),
        lambda: run_sync(ann.collections, wrong),
        lambda: run_sync(ann.stats, wrong),
    ):
        with pytest.raises(InvalidInputError, match="kinds must be a sequence"):
            call()
    assert everything(ann) == [record]


def test_a_put_needs_a_source_key_and_what_has_not_expired() -> None:
    keyed = Draft("a", source_key="k")
    with pytest.raises(InvalidInputError, match="draft 1 has no source_key"):
        complete_items([keyed, Draft("b")], [], SCOPE, NOW)
    with pytest.raises(InvalidInputError, match="'k' is both put and removed"):
        complete_items([keyed], ["k"], SCOPE, NOW)
    with pytest.raises(InvalidInputError, match=r"draft 1: expires_at .* has passed"):
        complete_items([keyed, Draft("c", source_key="l", expires_at=NOW)], [], SCOPE, NOW)


def test_numbers_and_texts_out_of_their_range_are_refused_by_name(ann: BoundMemory) -> None:
    (record,) = add(ann, "tea")

    def calls(number: Any) -> dict[str, Callable[[], object]]:
        return {
            "limit": lambda: run_sync(ann.search, "tea", limit=number),
            "limit must": lambda: run_sync(ann.list, limit=number),
            "diversity": lambda: run_sync(ann.search, "tea", diversity=number),
            "recency": lambda: run_sync(ann.search, "tea", recency=number),
            "importance": lambda: run_sync(ann.search, "tea", importance=number),
            "confidence": lambda: run_sync(ann.update, record.id, Patch(confidence=number)),
            "embed": lambda: run_sync(ann.add, "more", embed=number),
            "vector": lambda: run_sync(ann.search_by_vector, [number] * 3),
        }

    for number in (-1, math.nan, math.inf, 10**5_000, True, "1"):
        for name, call in calls(number).items():
            with pytest.raises(InvalidInputError, match=name):
                call()
    for limit in (0, 10_001, 2.0, None):
        with pytest.raises(InvalidInputError, match="limit must"):
            run_sync(ann.list, limit=limit)  # type: ignore[arg-type]  # that is the point
    others: dict[str, Callable[[], object]] = {
        "up to 100 hits, not 101": lambda: run_sync(ann.search, "tea", limit=101, diversity=0.5),
        f"query{HALVED}": lambda: run_sync(ann.search, HALF),
        "query has 10001 characters; at most 10000": lambda: run_sync(ann.search, "x" * 10_001),
        "query has 10001": lambda: run_sync(ann.search, "x" * 10_001, mode="substring"),
        "vector has 65537 numbers": lambda: run_sync(ann.search_by_vector, [1.0] * 65_537),
        f"valid_to{NO_ZONE}": lambda: run_sync(ann.update, record.id, Patch(valid_to=NAIVE)),
    }
    for reason, call in others.items():
        with pytest.raises(InvalidInputError, match=reason):
            call()
    assert everything(ann) == [record]


def test_an_open_handle_does_nothing(memory: Memory) -> None:
    open_handle = memory.bind(app="app")
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: run_sync(open_handle.add, "x"),
        "profile": lambda: run_sync(open_handle.profile),
        "add_many": lambda: run_sync(open_handle.add_many, []),
        "search": lambda: run_sync(open_handle.search, "x"),
        "search_by_vector": lambda: run_sync(open_handle.search_by_vector, [1.0]),
        "get": lambda: run_sync(open_handle.get, "x"),
        "supersede": lambda: run_sync(open_handle.supersede, "x", "y"),
        "history": lambda: run_sync(open_handle.history, "x"),
        "update": lambda: run_sync(open_handle.update, "x", Patch(text="y")),
        "delete": lambda: run_sync(open_handle.delete, "x"),
        "delete_exactly": lambda: run_sync(open_handle.delete_exactly, {"id": 1}),
        "delete_where": lambda: run_sync(open_handle.delete_where, Where()),
        "erase": lambda: run_sync(open_handle.erase),
        "stats": lambda: run_sync(open_handle.stats),
        "list": lambda: run_sync(open_handle.list),
        "put_many": lambda: run_sync(open_handle.put_many, [Draft("x", source_key="x")]),
        "collections": lambda: run_sync(open_handle.collections),
        "postpone": lambda: run_sync(open_handle.postpone, {"x": None}),
        "sweep": lambda: run_sync(open_handle.sweep),
        "remember": lambda: run_sync(open_handle.remember, [("user", "x")]),
        "recall": lambda: run_sync(open_handle.recall, "x"),
    }
    assert calls.keys() == set(OPERATIONS)
    for call in calls.values():
        with pytest.raises(ScopeError, match="user open"):
            call()


@pytest.mark.parametrize("bad", ["", " ", "\n", None, 5, b"ann", "x" * 513, "\ud800", "ann\0"], ids=repr)
def test_a_missing_owner_is_refused(memory: Memory, bad: Any) -> None:
    with pytest.raises(ScopeError, match="user"):
        owned_by(memory.bind(app="app"), bad)
    with pytest.raises(ScopeError, match="app"):
        memory.bind(app=bad, user="ann")
    if bad is not None:
        for name in [field.name for field in fields(Scope) if field.name != "app"]:
            keys: dict[str, Any] = {name: bad}
            with pytest.raises(ScopeError, match=name):
                memory.bind(**keys)


def test_a_fixed_owner_accepts_only_itself(memory: Memory, ann: BoundMemory) -> None:
    assert owned_by(ann, "ann").scope == ann.scope
    assert owned_by(memory.bind(app="app"), "ann").scope == ann.scope
    for other in ("bob", "Ann", "ann ", ""):
        with pytest.raises(ScopeError):
            owned_by(ann, other)
    with pytest.raises(ScopeError, match="belongs to session 's1'"):
        ann.bind(session="s1").bind(session="s2")
