"""Filters in the style of document databases: `{"address": {"city": "Oslo"}, "age": {"$gte": 18}}`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from memory_core.errors import InvalidInputError
from memory_core.values.checks import check_size, shown
from memory_core.values.limits import MAX_CONDITIONS
from memory_core.where.conditions import AllOf, AnyOf, Comparison, Condition, DataCondition, Group, NoneOf

_COMPARISONS: Final[Mapping[str, Comparison]] = {
    "$eq": "eq",
    "$ne": "ne",
    "$gt": "gt",
    "$gte": "gte",
    "$lt": "lt",
    "$lte": "lte",
    "$in": "in",
    "$nin": "nin",
    "$between": "between",
    "$prefix": "starts_with",
    "$like": "like",
    "$exists": "exists",
}
_GROUPS: Final[Mapping[str, Callable[[Sequence[Condition]], Group]]] = {
    "$and": AllOf,
    "$or": AnyOf,
    "$nor": NoneOf,
    "$not": NoneOf,
}
_ORDERS: Final = ("$gt", "$gte", "$lt", "$lte")
_OPERATORS: Final = ", ".join([*_COMPARISONS, *_GROUPS])

Path = tuple[str | int, ...]


def data_conditions(given: Mapping[str, Any] | None, within: Sequence[str | int] = ()) -> list[Condition]:
    """Convert a filter on `data` to conditions: `Where(matching=data_conditions({"rating": {"$gt": 4}}))`.

    A plain value, a list included, must be equal; an object of comparisons (`$eq $ne $gt $gte $lt $lte $in $nin
    $between $prefix $like $exists`) must be true; any other object is a filter for the object there. `$and`, `$or`
    and `$nor` take a list of filters, `$not` takes one filter or a list of them, of which none may be true. A part of a
    group is a filter, never a plain value. `$gt`, `$gte`, `$lt` and `$lte` accept infinity. Keys are literal: a period
    is part of the key. All parts must be true.

    Args:
        given: The filter; `None` for no conditions.
        within: Path to the value inside `data` that the filter is for.

    Raises:
        InvalidInputError: The filter is not an object, contains an unknown operator or one without a key, or is nested
            too deeply.
    """
    pairs = list(_pairs({} if given is None else given))
    for key, _ in pairs:
        if key.startswith("$") and key not in _GROUPS:
            raise InvalidInputError(f"a filter names a key first, such as {{'age': {{'$gte': 18}}}}, not {shown(key)}")
    try:
        return _Reading().conditions(tuple(within), given) if pairs else []
    except RecursionError as cause:
        raise InvalidInputError("a filter is nested too deeply, or contains itself") from cause


class _Reading:
    """Converts one filter to conditions; repeated parts count each time, because each is read."""

    def __init__(self) -> None:
        self._found = 0

    def conditions(self, path: Path, wanted: object) -> list[Condition]:
        """The conditions of a filter on the value at `path`."""
        return list(self._read(path, wanted))

    def _read(self, path: Path, wanted: object) -> Iterator[Condition]:
        if not isinstance(wanted, Mapping):
            yield self._leaf(path, "$eq", wanted)
            return
        pairs = list(_pairs(cast("object", wanted)))
        if not pairs:
            yield self._leaf(path, "$eq", {})
        elif {key[:1] == "$" for key, _ in pairs if key not in _GROUPS} == {True, False}:
            raise InvalidInputError(f"a filter mixes operators and keys at {path[-1:]!r}: {shown(dict(pairs))}")
        for key, value in pairs:
            if key in _GROUPS:
                yield self._group(path, key, value)
            elif key.startswith("$"):
                yield self._leaf(path, key, value)
            else:
                yield from self._read((*path, key), value)

    def _group(self, path: Path, name: str, value: object) -> Group:
        self._count()
        return _GROUPS[name]([_one(self.conditions(path, part)) for part in _parts(name, value)])

    def _leaf(self, path: Path, name: str, value: object) -> DataCondition:
        self._count()
        if name not in _COMPARISONS or not path:
            raise InvalidInputError(f"a filter knows {_OPERATORS}, each behind a key, not {shown(name)}")
        if isinstance(value, tuple):  # frameworks pass tuples for JSON lists
            value = list(cast("tuple[object, ...]", value))
        if (
            isinstance(value, float) and name in _ORDERS
        ):  # JSON has no infinity, and nothing is beyond the largest float
            value = min(max(value, -sys.float_info.max), sys.float_info.max)
        return DataCondition(path, _COMPARISONS[name], value)

    def _count(self) -> None:
        self._found += 1
        check_size("a filter", self._found, MAX_CONDITIONS, "conditions", "ask for less, or filter what is found")


def _parts(name: str, value: object) -> Sequence[object]:
    """The filters of a group. Another value is refused: it would be compared as a value, and the group would exclude
    nothing."""
    wrong = value  # not narrowed below, which leaves type checkers with half a type
    takes = "a list of filters" if name != "$not" else "a filter or a list of filters"
    if name == "$not" and isinstance(value, Mapping):
        return [cast("object", value)]
    parts = cast("Sequence[object]", value) if isinstance(value, Sequence) and not isinstance(value, str) else None
    if parts is None or (name == "$not" and not parts):
        raise InvalidInputError(f"{name} takes {takes}, not {shown(wrong)}")
    for part in parts:
        if not isinstance(part, Mapping):
            raise InvalidInputError(f"{name} takes {takes}; {shown(part)} is not a filter")
    return parts


def _one(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else AllOf(conditions)


def _pairs(given: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"a filter is a mapping of keys to values, not {shown(given)}")
    filters = cast("Mapping[object, Any]", given)
    check_size("a filter", len(filters), MAX_CONDITIONS, "keys", "ask for less, or filter what is found")
    for key, value in filters.items():
        if not isinstance(key, str):
            raise InvalidInputError(f"the keys of a filter are strings, not {shown(key)}")
        yield key, value
