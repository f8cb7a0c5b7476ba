"""Evaluate conditions in Python: the reference meaning for every store."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Any, Final, cast

from memory_core.concurrency.threads import yield_now
from memory_core.models import MemoryRecord
from memory_core.where.conditions import GROUPS, TAGS, AllOf, Condition, DataCondition, FieldCondition, NoneOf
from memory_core.where.patterns import like
from memory_core.where.where import EQUAL_FIELDS, Where

_ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_EQUALITIES: Final = ("eq", "ne", "in", "nin")
_NOTHING: Final = object()
"""Stands for the missing value of a path; equal to no value."""
_UNSPACED: Final = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "BOPOMOFO")
"""Prefixes of character names, for scripts that write words without spaces or with endings attached."""


_OCCURRENCES: Final = 1_000
"""Occurrences of a keyword inside other words that are tested before yielding to other work."""

Test = Callable[[Any], bool]
"""Tests a record, or any object with `data` if no condition is on a field."""


def satisfies(record: MemoryRecord, where: Where, now: datetime) -> bool:
    """True if a record satisfies every condition at `now`; the filters of all stores must agree with it.

    Args:
        where: Checked by `check_where`.
    """
    return (
        (record.expires_at is None or record.expires_at > now)
        and _has_fields(record, where)
        and _is_listed(record, where)
        and _is_in_ranges(record, where)
        and has_keyword(record.text, where.keywords)
        and all(matcher(condition)(record) for condition in conditions_of(where))
    )


def has_keyword(text: str, keywords: Collection[str] | None) -> bool:
    """True if a text contains one of the keywords, as defined by `Where.keywords`; true without a condition."""
    return keywords is None or keyword_test(keywords)(text)


def keyword_test(keywords: Collection[str]) -> Callable[[str], bool]:
    """Build a test for texts that contain one of the keywords, for use on many texts."""
    wanted = [folded(keyword).strip() for keyword in keywords]

    def test(text: str) -> bool:
        said = folded(text)
        for keyword in wanted:
            yield_now()
            if _contains(said, keyword):
                return True
        return False

    return test


def conditions_of(where: Where) -> list[Condition]:
    """`Where.matching`, and `Where.data` in the same form."""
    data = (DataCondition((name,), "eq", value) for name, value in (where.data or {}).items())
    return [*data, *(where.matching or ())]


def names_any(conditions: Iterable[Condition], fields: Collection[str]) -> bool:
    """True if one of the conditions is on one of these fields."""
    return any(
        names_any(one.conditions, fields)
        if isinstance(one, GROUPS)
        else isinstance(one, FieldCondition) and one.field in fields
        for one in conditions
    )


def matcher(condition: Condition, of_field: Callable[[FieldCondition], Test] | None = None) -> Test:
    """Build a test for records that satisfy a checked condition, for use on many records.

    Args:
        of_field: Builds the test of a condition on a field; by default it reads the attribute of the record.
    """
    if isinstance(condition, DataCondition):
        return _data_test(condition.path, [condition], is_any=False)
    if isinstance(condition, FieldCondition):
        return (of_field or _field_test)(condition)
    is_any = not isinstance(condition, AllOf)
    by_path: dict[tuple[str | int, ...], list[DataCondition]] = {}
    tests: list[Test] = []
    for one in condition.conditions:
        if isinstance(one, DataCondition):
            by_path.setdefault(one.path, []).append(one)
        else:
            tests.append(matcher(one, of_field))
    tests += [_data_test(path, some, is_any=is_any) for path, some in by_path.items()]
    return _group_test(tests, is_any=is_any, is_none=isinstance(condition, NoneOf))


def _group_test(tests: Sequence[Test], *, is_any: bool, is_none: bool) -> Test:
    def test(record: Any) -> bool:
        for one in tests:
            if one(record) is is_any:
                return is_any is not is_none
        return is_any is is_none

    return test


def _data_test(path: tuple[str | int, ...], some: Sequence[DataCondition], *, is_any: bool) -> Test:
    """Build a test for one, or all, of several conditions on one path, which looks up the value only once."""
    equalities, others = _equalities(some), [_value_test(one) for one in some if one.op not in _EQUALITIES]

    def test(record: Any) -> bool:
        value = _at(record.data, path)
        for one in others:
            if one(value) is is_any:
                return is_any
        if equalities:
            same = identity(value)
            for wanted, is_wanted in equalities:
                if ((same in wanted) is is_wanted) is is_any:
                    return is_any
        return not is_any

    return test


def _equalities(some: Sequence[DataCondition]) -> list[tuple[frozenset[Hashable], bool]]:
    """For each condition on equality, its values and whether one of them is required (or excluded)."""
    return [(_wanted(one), one.op in {"eq", "in"}) for one in some if one.op in _EQUALITIES]


def _wanted(condition: DataCondition | FieldCondition) -> frozenset[Hashable]:
    value = cast("Any", condition.value)
    return frozenset(map(identity, value if condition.op in {"in", "nin"} else [value]))


def identity(value: Any) -> Hashable:
    """A key that is equal for equal JSON values only: numbers compare by value, `true` and `1` differ."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, dict):
        return frozenset((name, identity(item)) for name, item in cast("dict[str, Any]", value).items())
    if isinstance(value, list | tuple):
        yield_now()
        return tuple(map(identity, cast("Sequence[Any]", value)))
    return cast("Hashable", value)


def _field_test(condition: FieldCondition) -> Test:
    name = condition.field
    if condition.op in _EQUALITIES:
        wanted, is_wanted = _wanted(condition), condition.op in {"eq", "in"}
        return lambda record: any(identity(one) in wanted for one in _field_values(record, name)) is is_wanted
    if name == TAGS and condition.op == "exists":
        return lambda record: bool(record.tags) is condition.value
    if condition.op == "exists":
        return lambda record: (getattr(record, name) is not None) is condition.value
    satisfies_it = _value_test(condition)
    return lambda record: any(map(satisfies_it, _field_values(record, name)))


def _field_values(record: Any, name: str) -> Sequence[object]:
    return (record.tags or [None]) if name == TAGS else [getattr(record, name)]


def _value_test(condition: DataCondition | FieldCondition) -> Callable[[object], bool]:
    """Build the test of one value, or `_NOTHING`, for a condition other than equality."""
    op, value = condition.op, cast("Any", condition.value)
    if op == "exists":
        return lambda one: (one is not _NOTHING) is value
    if op == "starts_with":
        return lambda one: isinstance(one, str) and one.startswith(value)
    if op == "like":
        matches = like(value)
        return lambda one: isinstance(one, str) and matches(one)
    if op == "between":
        above, below = _ordering(ge, value[0]), _ordering(le, value[1])
        return lambda one: above(one) and below(one)
    return _ordering(_ORDERINGS[op], value)


def _ordering(compare: Callable[[Any, Any], bool], bound: object) -> Callable[[object], bool]:
    if isinstance(bound, str | datetime):
        kind = str if isinstance(bound, str) else datetime
        return lambda one: isinstance(one, kind) and compare(one, bound)
    return lambda one: isinstance(one, int | float) and not isinstance(one, bool) and compare(one, bound)


def _has_fields(record: MemoryRecord, where: Where) -> bool:
    return all(getattr(where, name) in (None, getattr(record, name)) for name in EQUAL_FIELDS)


def _is_listed(record: MemoryRecord, where: Where) -> bool:
    return (
        record.state in where.states
        and where.left in (None, record.left)
        and (where.roles is None or record.role in where.roles)
        and (where.kinds is None or record.kind in where.kinds)
        and (where.tiers is None or record.tier in where.tiers)
        and (where.tags_any is None or not set(where.tags_any).isdisjoint(record.tags))
        and set(where.tags_all or ()) <= set(record.tags)
        and set(where.links or ()) <= set(record.links)
        and (where.ids is None or record.id in where.ids)
        and (where.source_keys is None or record.source_key in where.source_keys)
        and (where.under is None or _is_under(record.collection, where.under))
    )


def _is_under(collection: str | None, path: str) -> bool:
    return collection is not None and f"{collection}/".startswith(f"{path}/")


def _is_in_ranges(record: MemoryRecord, where: Where) -> bool:
    return (
        (where.min_importance is None or record.importance >= where.min_importance)
        and (where.min_confidence is None or record.confidence >= where.min_confidence)
        and (where.since is None or record.occurred_at >= where.since)
        and (where.until is None or record.occurred_at < where.until)
        and (where.as_of is None or _is_true_at(record, where.as_of))
    )


def _is_true_at(record: MemoryRecord, moment: datetime) -> bool:
    since = record.occurred_at if record.valid_from is None else record.valid_from
    return since <= moment and (record.valid_to is None or record.valid_to > moment)


def folded(text: str) -> str:
    """The text in a form for comparisons that ignore case and the composition of characters (NFC, NFD)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _contains(text: str, word: str) -> bool:
    found = text.find(word) if word else -1
    seen = 0
    while found >= 0:
        stop = found + len(word)
        if not _runs_on(text[found - 1 : found], word[0]) and not _runs_on(word[-1], text[stop : stop + 1]):
            return True
        found = text.find(word, found + 1)
        seen += 1
        if seen % _OCCURRENCES == 0:
            yield_now()
    return False


@lru_cache(maxsize=4_096)
def _runs_on(left: str, right: str) -> bool:
    """True if two adjacent characters belong to one word."""
    return all(c and (c.isalnum() or c == "_" or unicodedata.category(c)[0] == "M") for c in (left, right)) and not any(
        unicodedata.name(c, "").startswith(_UNSPACED) for c in (left, right)
    )


def _at(data: Any, path: Iterable[str | int]) -> object:
    """The value at the path, or `_NOTHING`."""
    for step in path:
        found = isinstance(data, dict) if isinstance(step, str) else isinstance(data, list)
        if not found:
            return _NOTHING
        try:
            data = data[step]
        except LookupError:
            return _NOTHING
    return cast("object", data)
