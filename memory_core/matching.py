"""What conditions mean, decided in Python: one meaning for every store."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, Final, cast

from memory_core.models import DataCondition, FieldCondition, MemoryRecord, Where

_ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_MISSING: Final = object()
_UNSPACED: Final = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "BOPOMOFO")
"""Scripts that write words without spaces between them, or with endings attached, by the names of their characters."""


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
        and all(_field_holds(record, condition) for condition in where.fields)
        and has_keyword(record.text, where.keywords)
        and all(name in record.data and is_same(record.data[name], value) for name, value in where.data.items())
        and matches_all(record.data, where.matching)
    )


def matches_all(data: object, conditions: Iterable[DataCondition]) -> bool:
    """Whether parsed JSON satisfies every condition, by the table at `DataCondition`."""
    return all(_holds(condition, _at(data, condition.path)) for condition in conditions)


def has_keyword(text: str, keywords: Collection[str]) -> bool:
    """Whether a text contains one of the keywords, as `Where.keywords` says; true if there are none."""
    if not keywords:
        return True
    said = folded(text)
    return any(_contains(said, folded(keyword).strip()) for keyword in keywords)


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: numbers by value, `true` and `1` never."""
    if all(isinstance(value, dict) for value in (one, other)):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if all(isinstance(value, list) for value in (one, other)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


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


def _field_holds(record: MemoryRecord, condition: FieldCondition) -> bool:
    held, wanted = getattr(record, condition.field), cast("Any", condition.value)
    if condition.op in _ORDERINGS:
        return held is not None and _ORDERINGS[condition.op](held, wanted)
    found: bool = held in wanted if condition.op == "in" else held == wanted
    return found is not (condition.op == "ne")


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


def _holds(condition: DataCondition, held: Any) -> bool:
    wanted: Any = condition.value
    if condition.op == "eq":
        return held is not _MISSING and is_same(held, wanted)
    if condition.op == "ne":
        return held is _MISSING or not is_same(held, wanted)
    if condition.op == "in":
        return held is not _MISSING and any(is_same(held, value) for value in wanted)
    if not (isinstance(held, str) and isinstance(wanted, str)) and not (_is_number(held) and _is_number(wanted)):
        return False
    return _ORDERINGS[condition.op](held, wanted)


def _at(data: Any, path: Iterable[str | int]) -> object:
    """What is found by following the path, or `_MISSING`."""
    for step in path:
        found = isinstance(data, dict) if isinstance(step, str) else isinstance(data, list)
        try:
            data = data[step] if found else _MISSING
        except LookupError:
            return _MISSING
    return data


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
