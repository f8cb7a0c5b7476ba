"""Conditions on `data`, decided in Python: one meaning for every store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

from memory_core.models import DataCondition

_ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_MISSING: Final = object()


def matches_all(data: object, conditions: Iterable[DataCondition]) -> bool:
    """Whether parsed JSON satisfies every condition, by the table at `DataCondition`."""
    return all(_holds(condition, _at(data, condition.path)) for condition in conditions)


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: numbers by value, `true` and `1` never."""
    if all(isinstance(value, dict) for value in (one, other)):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if all(isinstance(value, list) for value in (one, other)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _holds(condition: DataCondition, held: Any) -> bool:
    wanted: Any = condition.value
    if condition.op == "eq":
        return held is not _MISSING and is_same(held, wanted)
    if condition.op == "ne":
        return held is _MISSING or not is_same(held, wanted)
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
