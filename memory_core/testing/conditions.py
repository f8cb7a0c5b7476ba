"""Conditions: a store finds exactly what `memory_core.where.meaning` says, and refuses what exceeds a limit."""

# ruff: noqa: S101, S311, FBT003  (a contract is made of assertions, and these conditions of the same random ones)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, get_args, get_origin

import pytest

from memory_core import (
    AllOf,
    AnyOf,
    BoundMemory,
    DataCondition,
    Draft,
    FieldCondition,
    InvalidInputError,
    Link,
    MemoryRecord,
    NoneOf,
    Patch,
    Where,
    data_conditions,
    run_sync,
)
from memory_core.testing.base import Contract, Ticks, everything, texts
from memory_core.values.value import hints_of
from memory_core.where.checks import check_where
from memory_core.where.conditions import GROUPS, NAME_FIELDS, NUMBER_FIELDS, TIME_FIELDS, Condition
from memory_core.where.meaning import satisfies
from memory_core.where.where import ALTERNATIVES, ANY_STATE, CONJUNCTIONS

DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
TREES: Final = 150
"""Random trees of conditions, with a fixed seed."""

DRAFTS: Final[tuple[Draft, ...]] = (
    Draft("nothing set", id="bare", occurred_at=DAY),
    Draft("null", data={"p": None, "q": []}, author="a", occurred_at=DAY),
    Draft("one", data={"p": 1, "q": {"p": "x"}}, tags=["x"], author="ab", kind="fact", occurred_at=DAY),
    Draft("true", data={"p": True, "q": [1, "x"]}, tags=["y", "xy"], importance=1.0, session="a", occurred_at=DAY),
    Draft("half", data={"p": 0.5, "q": {"p": None}}, tags=["Z"], importance=0.0, emotion="joy"),
    Draft("text", data={"p": "x", "q": {"p": 2}}, author="b", collection="a/b", expires_at=DAY + timedelta(days=9_999)),
    Draft("longer", data={"p": "xylophone", "q": {"p": "xx"}}, session="ab", valid_from=DAY, valid_to=DAY),
    Draft("huge", data={"p": 2**70, "q": {}}, source_key="key", agent="a", confidence=0.5),
    Draft("astral", data={"p": "\U0001f375", "q": ["\U0001f375"]}, author="\U0001f375", tags=["\U0001f375", "é"]),
)
VALUES: Final[tuple[Any, ...]] = (None, True, False, 0, 1, 1.0, 0.5, 2, 2**70, "x", "xy", "", [], {}, [1, "x"])
PATHS: Final[tuple[tuple[str | int, ...], ...]] = (("p",), ("q",), ("q", "p"), ("q", 0), ("missing",), (0,))
NAMES: Final = (None, "a", "ab", "x", "xy", "note", "fact", "joy", "key", "\U0001f375", "")

MISSING: Final[dict[str, tuple[Condition, str]]] = {
    "eq null": (DataCondition(("p",), "eq", None), "null"),
    "ne null": (DataCondition(("p",), "ne", None), "missing value"),
    "ne value": (DataCondition(("p",), "ne", "v"), "missing null"),
    "in": (DataCondition(("p",), "in", [None, "v"]), "null value"),
    "nin": (DataCondition(("p",), "nin", ["v"]), "missing null"),
    "order": (DataCondition(("p",), "gte", ""), "value"),
    "between": (DataCondition(("p",), "between", ["a", "z"]), "value"),
    "starts_with": (DataCondition(("p",), "starts_with", ""), "value"),
    "like": (DataCondition(("p",), "like", "%"), "value"),
    "exists": (DataCondition(("p",), "exists", True), "null value"),
    "exists not": (DataCondition(("p",), "exists", False), "missing"),
    "none of": (NoneOf([DataCondition(("p",), "gte", "")]), "missing null"),
    "field eq None": (FieldCondition("author", "eq", None), "missing null"),
    "field ne": (FieldCondition("author", "ne", "Ann"), "missing null"),
    "field in": (FieldCondition("author", "in", [None, "Ann"]), "missing null value"),
    "field nin": (FieldCondition("author", "nin", ["Ann"]), "missing null"),
    "field exists": (FieldCondition("author", "exists", True), "value"),
    "field starts_with": (FieldCondition("author", "starts_with", ""), "value"),
    "time order": (FieldCondition("valid_to", "gt", DAY), "value"),
    "none of time order": (NoneOf([FieldCondition("valid_to", "gt", DAY)]), "missing null"),
    "tags eq None": (FieldCondition("tags", "eq", None), "missing null"),
    "tags exists": (FieldCondition("tags", "exists", True), "value"),
    "tags ne": (FieldCondition("tags", "ne", "red"), "missing null"),
    "tags starts_with": (FieldCondition("tags", "starts_with", "r"), "value"),
    "any of nothing": (AnyOf([]), ""),
    "all of nothing": (AllOf([]), "missing null value"),
    "none of nothing": (NoneOf([]), "missing null value"),
    "any": (AnyOf([FieldCondition("author", "eq", "Ann"), DataCondition(("p",), "eq", None)]), "null value"),
}


def _nested(levels: int) -> Condition:
    tree: Condition = FieldCondition("rev", "gte", 0)
    for _ in range(levels):
        tree = AllOf([tree])
    return tree


WANTED: Final[dict[str, tuple[Any, ...]]] = {
    "roles": ("user", "assistant", "tool"),
    "kinds": ("fact", "note", "none has it"),
    "tiers": ("raw", "medium", "high"),
    "tags_any": ("x", "y", "\U0001f375"),
    "tags_all": ("y", "xy", "Z"),
    "keywords": ("null", "one", "set"),
    "author": ("a", "b", "none has it"),
    "agent": ("a", "b"),
    "session": ("a", "ab"),
    "collection": ("a/b", "a"),
    "under": ("a", "a/b", "b"),
    "emotion": ("joy", "none has it"),
    "min_importance": (0.0, 0.6, 1.0),
    "min_confidence": (0.0, 0.6, 1.0),
    "since": (DAY, DAY + timedelta(days=1)),
    "until": (DAY, DAY + timedelta(days=1)),
    "as_of": (DAY, DAY + timedelta(days=1), DAY + timedelta(days=9_000)),
    "links": (Link("follows", "bare"),),
    "states": ("active", "archived"),
    "left": (True, False, None),
    "data": ({"p": 1}, {"p": None}, {"p": "x"}),
    "matching": (FieldCondition("author", "exists", True), AnyOf([]), DataCondition(("p",), "in", [])),
    "ids": ("bare", "none has it"),
    "source_keys": ("key", "none has it"),
}
"""For each condition of a `Where`, values that some records satisfy or none; those of a list one by one."""


def _is_several(name: str) -> bool:
    """True if a condition has several values."""
    kinds = [get_origin(each) for each in (hints_of(Where)[name], *get_args(hints_of(Where)[name]))]
    return any(kind in {Sequence, Mapping} for kind in kinds)


def _some(name: str, random: Random) -> Any:
    """A value of a condition; of several values any number, also zero."""
    if name == "data":
        values: tuple[Any, ...] = (dict[str, Any](), *WANTED[name])
        return random.choice(values)
    return random.choices(WANTED[name], k=random.randint(0, 2)) if _is_several(name) else random.choice(WANTED[name])


def _found(records: Sequence[MemoryRecord], where: Where, clock: Ticks) -> set[str]:
    """The ids of the records that satisfy the conditions by their plain meaning."""
    return {record.id for record in records if satisfies(record, check_where(where), clock.now)}


_CHANGES: Final = (Patch(left=True), Patch(state="archived"), Patch(left=True, state="archived"))
"""The changes of the first records, so that not all of them are found by default."""


class ConditionContract(Contract):
    """Every comparison and group, on every comparable field, and the limits of conditions."""

    def test_random_conditions_find_exactly_what_matching_says(self, ann: BoundMemory, clock: Ticks) -> None:
        run_sync(ann.add_many, DRAFTS)
        records = everything(ann)
        assert len(records) == len(DRAFTS)
        random, sizes = Random(7), set[int]()
        for _ in range(TREES):
            where = Where(matching=[_tree(random) for _ in range(random.choice([1, 1, 2]))])
            expected = {record.text for record in records if satisfies(record, check_where(where), clock.now)}
            assert set(texts(run_sync(ann.list, where=where).records)) == expected, where
            sizes.add(len(expected))
        assert {0, len(DRAFTS)} < sizes

    @pytest.mark.parametrize("name", [each.name for each in fields(Where)])
    def test_no_value_is_no_condition_and_no_alternative_matches_nothing(self, ann: BoundMemory, name: str) -> None:
        run_sync(ann.add_many, DRAFTS)
        assert getattr(Where(), name) is None or name in {"states", "left"}
        if _is_several(name):
            assert (name in ALTERNATIVES) is not (name in CONJUNCTIONS)
            empty: Any = {} if name == "data" else []
            where, found = Where(**{name: empty}), 0 if name in ALTERNATIVES else len(DRAFTS)
            assert len(run_sync(ann.list, where=where).records) == found
            assert bool(run_sync(ann.search, "null", where=where, mode="substring")) is bool(found)
            assert bool(run_sync(ann.search, "null", where=where, mode="lexical")) is bool(found)
            assert run_sync(ann.delete_where, where).records == found
            assert len(everything(ann)) == len(DRAFTS) - found

    @pytest.mark.parametrize("name", [each.name for each in fields(Where)])
    def test_every_condition_finds_and_deletes_what_its_plain_meaning_says(
        self, ann: BoundMemory, clock: Ticks, name: str
    ) -> None:
        run_sync(ann.add_many, DRAFTS)
        for record, patch in zip(everything(ann), _CHANGES, strict=False):
            run_sync(ann.update, record.id, patch)
        records, random = run_sync(ann.list, where=ANY_STATE).records, Random(name)
        assert len(records) == len(DRAFTS)
        wheres = [Where(**{name: _some(name, random)}) for _ in range(4)]
        wheres += [replace(where, **{other: _some(other, random)}) for where in wheres for other in WANTED]
        for where in random.sample(wheres, k=20):
            found = _found(records, where, clock)
            assert {record.id for record in run_sync(ann.list, where=where).records} == found
            assert run_sync(ann.stats, where).records == len(found)
            ranked = run_sync(ann.search, "one", where=where, mode="lexical", floor=False, limit=100)
            assert {hit.record.id for hit in ranked} == found
            holding = run_sync(ann.search, "e", where=where, mode="substring", limit=100)
            assert {hit.record.id for hit in holding} == {each.id for each in records if "e" in each.text} & found
        gone = _found(records, wheres[0], clock)
        assert run_sync(ann.delete_where, wheres[0]).records == len(gone)
        assert {record.id for record in run_sync(ann.list, where=ANY_STATE)} == {record.id for record in records} - gone

    @pytest.mark.parametrize(("condition", "found"), MISSING.values(), ids=MISSING.keys())
    def test_missing_values_satisfy_conditions_as_documented(
        self, ann: BoundMemory, condition: Condition, found: str
    ) -> None:
        value = Draft("value", data={"p": "v"}, author="Ann", tags=["red"], valid_to=DAY + timedelta(days=1))
        run_sync(ann.add_many, [Draft("missing", data={"q": 1}), Draft("null", data={"p": None}), value])
        assert sorted(texts(run_sync(ann.list, where=Where(matching=[condition])).records)) == found.split()
        words = run_sync(ann.search, "missing null value", mode="lexical", where=Where(matching=[condition]))
        assert sorted(texts(words)) == found.split()

    def test_a_filter_of_a_document_database_is_one_too(self, ann: BoundMemory) -> None:
        run_sync(ann.add_many, [Draft(name, data={"name": name, "age": age}) for name, age in _AGES.items()])
        for given, found in _FILTERS:
            page = run_sync(ann.list, where=Where(matching=data_conditions(given)))
            assert sorted(texts(page.records)) == found.split(), given

    def test_as_many_conditions_as_the_limit_are_answered(self, ann: BoundMemory) -> None:
        run_sync(ann.add, Draft("tea", id="7", tags=["red"], data={"a": 7}))
        several: list[list[Condition]] = [
            [FieldCondition("rev", "gte", 0)] * 100,
            [AnyOf([DataCondition(("a",), "eq", n) for n in range(99)])],
            [DataCondition(("a",), "in", list(range(1_000)))],
            [FieldCondition("id", "in", [str(n) for n in range(1_000)])],
            [FieldCondition("access_count", "in", list(range(1_000)))],
            [_nested(10)],
        ]
        for matching in several:
            assert texts(run_sync(ann.list, where=Where(matching=matching)).records) == ["tea"]
            assert len(run_sync(ann.search, "tea", where=Where(matching=matching), mode="lexical")) == 1
        with pytest.raises(InvalidInputError, match="11 levels of groups"):
            run_sync(ann.list, where=Where(matching=[_nested(11)]))


_AGES: Final = {"Ann": 30, "Tom": 17, "Eve": 65}
_FILTERS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"$or": [{"age": {"$lt": 18}}, {"age": {"$gt": 60}}]}, "Eve Tom"),
    ({"$nor": [{"name": "Ann"}, {"age": 17}]}, "Eve"),
    ({"age": {"$not": {"$gte": 18}}}, "Tom"),
    ({"$not": {"age": {"$gte": 18}, "name": "Ann"}}, "Eve Tom"),
    ({"$not": [{"age": 17}, {"name": "Ann"}]}, "Eve"),
    ({"age": {"$not": [{"$gte": 65}, {"$lt": 18}]}}, "Ann"),
    ({"age": {"$or": [{"$lt": 18}, {"$eq": 30}]}}, "Ann Tom"),
    ({"$and": [{"age": {"$between": [18, 99]}}, {"name": {"$prefix": "A"}}]}, "Ann"),
    ({"age": {"$nin": [17, 30]}, "$or": [{"name": {"$exists": True}}]}, "Eve"),
    ({"nickname": {"$exists": False}, "age": {"$in": (17, 30)}}, "Ann Tom"),
]


def _tree(random: Random, levels: int = 3) -> Condition:
    if levels and random.random() < 0.45:
        return GROUPS[random.randrange(len(GROUPS))]([_tree(random, levels - 1) for _ in range(random.randint(1, 3))])
    return _on_data(random) if random.random() < 0.5 else _on_field(random)


def _on_data(random: Random) -> Condition:
    op: Any = random.choice(
        ["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "between", "starts_with", "like", "exists"]
    )
    several = random.choices(VALUES, k=random.randint(0, 3))
    values: dict[str, Any] = {
        "in": several,
        "nin": several,
        "between": random.choice([[0, 1], [0.5, 2], ["x", "xz"], ["", "\U0001f375"]]),
        "starts_with": random.choice(["", "x", "xy", "\U0001f375"]),
        "like": random.choice(["", "%", "_", "x%", "%y", "_🍵"]),
        "exists": random.random() < 0.5,
    }
    order = random.choice([0, 1, 0.5, 2**70, "x", ""])
    wanted = values.get(op, random.choice(VALUES) if op in {"eq", "ne"} else order)
    return DataCondition(random.choice(PATHS), op, wanted)


def _on_field(random: Random) -> Condition:
    field: Any = random.choice([*NAME_FIELDS, "tags", "tags", *NUMBER_FIELDS, *TIME_FIELDS])
    is_name = field in NAME_FIELDS or field == "tags"
    op: Any = random.choice(["eq", "ne", "in", "nin", "exists", *(["starts_with"] if is_name else _ORDERS)])
    known = (0, 0.5, 1, 1.0) if field in NUMBER_FIELDS else (DAY, DAY + timedelta(days=1), DAY + timedelta(days=9_999))
    values: tuple[Any, ...] = NAMES if is_name else known
    if op == "exists":
        return FieldCondition(field, op, random.random() < 0.5)
    if op in {"in", "nin"}:
        return FieldCondition(field, op, random.choices([*values, None], k=random.randint(0, 3)))
    if op == "between":
        return FieldCondition(field, op, random.choices(values, k=2))
    if op == "starts_with":
        return FieldCondition(field, op, random.choice([name for name in NAMES if name is not None]))
    return FieldCondition(field, op, random.choice([*values, None] if op in {"eq", "ne"} else values))


_ORDERS: Final = ("gt", "gte", "lt", "lte", "between")
