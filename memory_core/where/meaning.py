"""What conditions mean, decided in Python: one meaning for every store."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, Final, cast

from memory_core.models import MemoryRecord
from memory_core.where.conditions import GROUPS, TAGS, AllOf, AnyOf, Condition, DataCondition, FieldCondition
from memory_core.where.value import Where

_ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_EQUALITIES: Final = ("eq", "ne", "in", "nin")
_ORDERED: Final[tuple[Any, ...]] = (int | float, str, datetime)
_UNSPACED: Final = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "BOPOMOFO")
"""Scripts that write words without spaces between them, or with endings attached, by the names of their characters."""


Test = Callable[[Any], bool]
"""Of a record; of anything that has its `data`, if no condition is on a field."""


def satisfies(record: MemoryRecord, where: Where, now: datetime) -> bool:
    """Whether a record satisfies every condition at `now`: what a store's filters are measured by.

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


def has_keyword(text: str, keywords: Collection[str]) -> bool:
    """Whether a text contains one of the keywords, as `Where.keywords` says; true if there are none."""
    if not keywords:
        return True
    said = folded(text)
    return any(_contains(said, folded(keyword).strip()) for keyword in keywords)


def conditions_of(where: Where) -> list[Condition]:
    """`Where.matching`, and `Where.data` in the same form."""
    return [*(DataCondition((name,), "eq", value) for name, value in where.data.items()), *where.matching]


def names_any(conditions: Iterable[Condition], fields: Collection[str]) -> bool:
    """Whether one of the conditions is on one of these fields."""
    return any(
        names_any(one.conditions, fields)
        if isinstance(one, GROUPS)
        else isinstance(one, FieldCondition) and one.field in fields
        for one in conditions
    )


def is_on_data(condition: Condition) -> bool:
    """Whether `data` alone decides."""
    if isinstance(condition, GROUPS):
        return all(map(is_on_data, condition.conditions))
    return isinstance(condition, DataCondition)


def matcher(condition: Condition) -> Test:
    """What decides whether a record satisfies a checked condition; made once, asked of many records."""
    if isinstance(condition, DataCondition):
        compares, path = _comparison(condition), condition.path
        return lambda record: compares(_at(record.data, path))
    if isinstance(condition, FieldCondition):
        return _field_test(condition)
    tests = [matcher(one) for one in condition.conditions]
    if isinstance(condition, AllOf):
        return lambda record: all(test(record) for test in tests)
    is_any = isinstance(condition, AnyOf)
    return lambda record: any(test(record) for test in tests) is is_any


def identity(value: Any) -> Hashable:
    """Equal for two JSON values exactly if the values are: numbers by value, `true` and `1` never."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, dict):
        return frozenset((name, identity(held)) for name, held in cast("dict[str, Any]", value).items())
    if isinstance(value, list | tuple):
        return tuple(map(identity, cast("Sequence[Any]", value)))
    return cast("Hashable", value)


def _field_test(condition: FieldCondition) -> Test:
    compares, name = _comparison(condition), condition.field
    if name == TAGS:
        takes_none = condition.op in _EQUALITIES
        return lambda record: compares(record.tags or ([None] if takes_none else []))
    if condition.op == "exists":
        return lambda record: (getattr(record, name) is not None) is condition.value
    return lambda record: compares([getattr(record, name)])


def _comparison(condition: DataCondition | FieldCondition) -> Callable[[Sequence[Any]], bool]:
    """What one of the values that a condition is about has to satisfy; for `ne` and `nin`, what none may."""
    op, value = condition.op, cast("Any", condition.value)
    if op == "exists":
        return lambda held: bool(held) is value
    if op in _EQUALITIES:
        wanted = frozenset(map(identity, value if op in {"in", "nin"} else [value]))
        is_wanted = op in {"eq", "in"}
        return lambda held: any(identity(one) in wanted for one in held) is is_wanted
    if op == "starts_with":
        return lambda held: any(isinstance(one, str) and one.startswith(value) for one in held)
    least, greatest = value if op == "between" else (value, value)
    orderings = [(ge, least), (le, greatest)] if op == "between" else [(_ORDERINGS[op], value)]
    return lambda held: any(
        all(_is_comparable(one, bound) and compare(one, bound) for compare, bound in orderings) for one in held
    )


def _is_comparable(one: object, other: object) -> bool:
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in _ORDERED) and not isinstance(one, bool)


def _has_fields(record: MemoryRecord, where: Where) -> bool:
    named = ("author", "agent", "session", "collection", "emotion")
    return all(getattr(where, name) in (None, getattr(record, name)) for name in named)


def _is_listed(record: MemoryRecord, where: Where) -> bool:
    return (
        record.state in where.states
        and (not where.roles or record.role in where.roles)
        and (not where.kinds or record.kind in where.kinds)
        and (not where.tiers or record.tier in where.tiers)
        and (not where.tags_any or not set(where.tags_any).isdisjoint(record.tags))
        and set(where.tags_all) <= set(record.tags)
        and set(where.links) <= set(record.links)
        and (where.ids is None or record.id in where.ids)
        and (where.source_keys is None or record.source_key in where.source_keys)
        and (where.under is None or f"{record.collection}/".startswith(f"{where.under}/"))
    )


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
    """The text as it is compared where case and the composition of characters (NFC, NFD) do not matter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _contains(text: str, word: str) -> bool:
    start = text.find(word) if word else -1
    while start >= 0:
        stop = start + len(word)
        if not _runs_on(text[start - 1 : start], word[0]) and not _runs_on(word[-1], text[stop : stop + 1]):
            return True
        start = text.find(word, start + 1)
    return False


def _runs_on(left: str, right: str) -> bool:
    """Whether a word goes on from one character to the next."""
    return all(c and (c.isalnum() or c == "_" or unicodedata.category(c)[0] == "M") for c in (left, right)) and not any(
        unicodedata.name(c, "").startswith(_UNSPACED) for c in (left, right)
    )


def _at(data: Any, path: Iterable[str | int]) -> Sequence[object]:
    """What is found by following the path: one value or none."""
    for step in path:
        found = isinstance(data, dict) if isinstance(step, str) else isinstance(data, list)
        if not found:
            return ()
        try:
            data = data[step]
        except LookupError:
            return ()
    return (data,)
