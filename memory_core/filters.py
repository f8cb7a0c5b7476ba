"""Filters as document databases write them: `{"address": {"city": "Oslo"}, "age": {"$gte": 18}}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from memory_core.checks import shown
from memory_core.errors import InvalidInputError
from memory_core.models import Comparison, DataCondition

_OPERATORS: Final[Mapping[str, Comparison]] = {
    "$eq": "eq",
    "$ne": "ne",
    "$gt": "gt",
    "$gte": "gte",
    "$lt": "lt",
    "$lte": "lte",
    "$in": "in",
}

Path = tuple[str | int, ...]


def data_conditions(given: Mapping[str, Any] | None, within: Sequence[str | int] = ()) -> list[DataCondition]:
    """What a filter asks of `data`: `Where(matching=data_conditions({"rating": {"$gt": 4}}))`.

    A plain value, a list included, must be equal; an object of operators (`$eq $ne $gt $gte $lt $lte $in`) must hold;
    any other object is a filter for the object there. A key is a key, periods and all. All of it must hold.

    Args:
        given: The filter; `None` asks for nothing.
        within: Path to the value inside `data` that the filter is for.

    Raises:
        InvalidInputError: The filter is no object, names an operator that does not exist or one without a key, or is
            nested too deeply.
    """
    pairs = list(_pairs(given or {}))
    for key, _ in pairs:
        if key.startswith("$"):
            raise InvalidInputError(f"a filter names a key first, such as {{'age': {{'$gte': 18}}}}, not {shown(key)}")
    try:
        return [condition for key, wanted in pairs for condition in _conditions((*within, key), wanted)]
    except RecursionError as cause:
        raise InvalidInputError("a filter is nested too deeply, or contains itself") from cause


def _conditions(path: Path, wanted: object) -> Iterator[DataCondition]:
    if not isinstance(wanted, Mapping):
        yield DataCondition(path, "eq", _plain(wanted))
        return
    pairs = list(_pairs(cast("object", wanted)))
    operators = [key.startswith("$") for key, _ in pairs]
    if pairs and all(operators):
        for name, value in pairs:
            yield _comparison(path, name, value)
    elif any(operators):
        raise InvalidInputError(f"a filter mixes operators and keys at {path[-1]!r}: {shown(dict(pairs))}")
    elif pairs:
        for key, inner in pairs:
            yield from _conditions((*path, key), inner)
    else:
        yield DataCondition(path, "eq", {})


def _comparison(path: Path, name: str, value: object) -> DataCondition:
    if name not in _OPERATORS:
        raise InvalidInputError(f"a filter knows {', '.join(_OPERATORS)}, not {shown(name)}")
    return DataCondition(path, _OPERATORS[name], _plain(value))


def _pairs(given: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"a filter is a mapping of keys to values, not {shown(given)}")
    for key, value in cast("Mapping[object, Any]", given).items():
        if not isinstance(key, str):
            raise InvalidInputError(f"the keys of a filter are strings, not {shown(key)}")
        yield key, value


def _plain(value: object) -> Any:
    """Tuples are the lists of JSON here, as frameworks pass them."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value
