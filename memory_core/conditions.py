"""Conditions that a caller hands over, checked before a store sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from memory_core.checks import check_key, check_listed, check_text, check_texts, check_time, check_unit, shown
from memory_core.drafts import check_data, check_links, or_none
from memory_core.errors import InvalidInputError
from memory_core.models import (
    COMPARISONS,
    MAX_ALTERNATIVES,
    NAME_FIELDS,
    NUMBER_FIELDS,
    ROLES,
    STATES,
    TIERS,
    TIME_FIELDS,
    DataCondition,
    FieldCondition,
    Json,
    Where,
)


def check_where(where: object) -> Where:
    """`where` if every condition can be put to a store.

    Raises:
        InvalidInputError: One cannot; the message names it.
    """
    if not isinstance(where, Where):
        raise InvalidInputError(f"conditions are given as a Where, such as Where(kinds=['fact']), not {shown(where)}")
    changes: dict[str, Any] = {}  # by field name; most searches set two or three, as they have to be
    for name, default in _DEFAULTS.items():
        value = getattr(where, name)
        if value != default and (allowed := _CONDITIONS[name](value)) is not value:
            changes[name] = allowed
    checked = replace(where, **changes) if changes else where
    if checked.as_of is not None and "active" in checked.states:
        checked = replace(checked, states=tuple(dict.fromkeys((*checked.states, "archived"))))
    return checked


def _texts(name: str) -> Callable[[object], tuple[str, ...]]:
    return lambda value: check_texts(name, value)


def _keywords(value: object) -> tuple[str, ...]:
    keywords = check_texts("keywords", value)
    if not all(map(str.strip, keywords)):
        raise InvalidInputError(f"one of keywords is blank, which every text would contain: {keywords!r:.80}")
    return keywords


def _some_of(name: str, allowed: Sequence[str], *, least: int) -> Callable[[object], tuple[str, ...]]:
    def check(value: object) -> tuple[str, ...]:
        given = check_texts(name, value)
        if len(given) < least or not set(given) <= set(allowed):
            raise InvalidInputError(f"{name} must be some of {', '.join(allowed)}, not {shown(value)}")
        return given

    return check


def _data_condition(value: object) -> Mapping[str, Json]:
    data = check_data(value)
    for name, item in data.items():
        if isinstance(item, list | dict):
            raise InvalidInputError(f"data can be filtered by plain values only, not {shown(name)}: {shown(item)}")
    return data


def _matching(value: object) -> tuple[DataCondition, ...]:
    return tuple(_data_comparison(item) for item in _sequence("matching", DataCondition, value))


def _data_comparison(given: object) -> DataCondition:
    if not isinstance(given, DataCondition):
        raise InvalidInputError(f"matching takes DataCondition(path, op, value), not {shown(given)}")
    path = tuple(_step(step) for step in _steps(given.path))
    if given.op not in COMPARISONS:
        raise InvalidInputError(f"op must be one of {', '.join(COMPARISONS)}, not {shown(given.op)}")
    value = check_data({"value": given.value})["value"]
    if given.op == "in":
        if not isinstance(value, list):
            raise InvalidInputError(f"in takes an array of values, not {shown(value)}")
    elif given.op not in {"eq", "ne"} and (isinstance(value, bool) or not isinstance(value, int | float | str)):
        raise InvalidInputError(f"{given.op} compares numbers or texts; {shown(value)} has no order")
    return replace(given, path=path, value=value)


def _steps(path: object) -> Sequence[object]:
    steps = _items(path)
    if not steps:
        raise InvalidInputError(f"path must be a tuple such as ('address', 'city'), not {shown(path)}")
    return steps


def _items(value: object) -> Sequence[object]:
    """What a sequence holds; a text and everything else hold nothing."""
    return cast("Sequence[object]", value) if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _step(step: object) -> str | int:
    if isinstance(step, str) or (isinstance(step, int) and not isinstance(step, bool) and step >= 0):
        return step
    raise InvalidInputError(f"a path is made of keys and of positions from 0 on, not of {shown(step)}")


def _fields(value: object) -> tuple[FieldCondition, ...]:
    return tuple(_field_condition(item) for item in _sequence("fields", FieldCondition, value))


def _sequence(name: str, kind: type, value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(f"{name} must be a sequence of {kind.__name__}, not {shown(value)}")
    return cast("Sequence[object]", value)


def _is_field(name: object) -> bool:
    return isinstance(name, str) and name in _VALUES


def _field_condition(given: object) -> FieldCondition:
    if not isinstance(given, FieldCondition):
        raise InvalidInputError(f"fields takes FieldCondition(field, op, value), not {shown(given)}")
    if not _is_field(given.field):
        raise InvalidInputError(f"fields compares {', '.join(_VALUES)}, not {shown(given.field)}")
    if given.op not in COMPARISONS:
        raise InvalidInputError(f"op must be one of {', '.join(COMPARISONS)}, not {shown(given.op)}")
    check = _VALUES[given.field]
    if given.op == "in":
        return replace(given, value=tuple(map(check, _alternatives(given))))
    if given.op not in {"eq", "ne"} and (given.value is None or given.field in NAME_FIELDS):
        raise InvalidInputError(
            f"{given.op} compares moments and numbers; {given.field} {shown(given.value)} has no order"
        )
    return replace(given, value=check(given.value))


def _alternatives(given: FieldCondition) -> Sequence[object]:
    value = given.value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(f"in takes a sequence of values, not {shown(value)}")
    values = cast("Sequence[object]", value)
    if len(values) > MAX_ALTERNATIVES:
        raise InvalidInputError(f"in takes at most {MAX_ALTERNATIVES} values for {given.field}, not {len(values)}")
    return values


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise InvalidInputError(f"{name} is compared with a number of at most 2**53, not {shown(value)}")
    return value


_LARGEST: Final = 2**53
"""Up to it every whole number is a float, too."""
_VALUES: Final[Mapping[str, Callable[[object], Any]]] = {
    **{name: or_none(check_time, name) for name in TIME_FIELDS},
    **{name: or_none(_number, name) for name in NUMBER_FIELDS},
    **{name: or_none(check_listed, name) for name in NAME_FIELDS},
}
"""What a field may be compared with."""
_CONDITIONS: Final[Mapping[str, Callable[[object], Any]]] = {
    "roles": _some_of("roles", ROLES, least=0),
    "kinds": _texts("kinds"),
    "tiers": _some_of("tiers", TIERS, least=0),
    "tags_any": _texts("tags_any"),
    "tags_all": _texts("tags_all"),
    "keywords": _keywords,
    "author": or_none(check_text, "author"),
    "agent": or_none(check_text, "agent"),
    "session": or_none(check_text, "session"),
    "collection": or_none(check_text, "collection"),
    "under": or_none(check_key, "under"),
    "emotion": or_none(check_text, "emotion"),
    "min_importance": or_none(check_unit, "min_importance"),
    "min_confidence": or_none(check_unit, "min_confidence"),
    "since": or_none(check_time, "since"),
    "until": or_none(check_time, "until"),
    "as_of": or_none(check_time, "as_of"),
    "links": check_links,
    "states": _some_of("states", STATES, least=1),
    "data": _data_condition,
    "matching": _matching,
    "fields": _fields,
    "ids": or_none(check_texts, "ids"),
    "source_keys": or_none(check_texts, "source_keys"),
}
_DEFAULTS: Final[Mapping[str, object]] = {name: getattr(Where(), name) for name in _CONDITIONS}
