"""Validate a caller's conditions before they are passed to a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from memory_core.errors import InvalidInputError
from memory_core.models import ROLES, STATES, TIERS, Json, State
from memory_core.records.fields import check_links, or_none
from memory_core.values.checks import (
    check_flag,
    check_key,
    check_listed,
    check_name,
    check_one_of,
    check_size,
    check_texts,
    check_time,
    check_unit,
    shown,
)
from memory_core.values.json_checks import check_json
from memory_core.values.limits import (
    MAX_ALTERNATIVES,
    MAX_CONDITIONS,
    MAX_DATA_BYTES,
    MAX_DATA_LEVELS,
    MAX_GROUP_LEVELS,
    MAX_KEY_CHARS,
    MAX_KEYWORDS,
    MAX_PATTERN_CHARS,
    MAX_VALUE_BYTES,
)
from memory_core.where.conditions import (
    COMPARISONS,
    GROUPS,
    NAME_FIELDS,
    NUMBER_FIELDS,
    TAGS,
    TIME_FIELDS,
    Comparison,
    Condition,
    DataCondition,
    FieldCondition,
)
from memory_core.where.where import CONJUNCTIONS, EQUAL_FIELDS, Where


def check_where(where: object) -> Where:
    """Return `where` with every condition validated and normalised; what is no condition becomes `None`.

    Raises:
        InvalidInputError: A condition is invalid; the message names it.
    """
    if not isinstance(where, Where):
        raise InvalidInputError(f"conditions are given as a Where, such as Where(kinds=['fact']), not {shown(where)}")
    changes: dict[str, Any] = {}  # by field name; most searches set two or three fields, already in normal form
    for name, default in _DEFAULTS.items():
        value = getattr(where, name)
        if value == default:
            continue
        allowed = None if name in CONJUNCTIONS and _is_empty(value) else _CONDITIONS[name](value)
        if allowed is not value:
            changes[name] = allowed
    checked = replace(where, **changes) if changes else where
    return checked if checked.as_of is None else _showing_the_past(checked)


def _showing_the_past(where: Where) -> Where:
    """A record that was true at a moment may have been archived or left since."""
    archived: tuple[State, ...] = ("archived",) if "active" in where.states else ()
    return replace(where, states=tuple(dict.fromkeys((*where.states, *archived))), left=where.left or None)


def _is_empty(value: object) -> bool:
    return isinstance(value, Sequence | Mapping) and not isinstance(value, str) and not value


def _texts(name: str) -> Callable[[object], tuple[str, ...]]:
    return lambda value: check_texts(name, value)


def _keywords(value: object) -> tuple[str, ...]:
    keywords = check_texts("keywords", value, MAX_KEYWORDS)
    if not all(map(str.strip, keywords)):
        raise InvalidInputError(f"one of keywords is blank, which every text would contain: {shown(keywords)}")
    return keywords


def _some_of(name: str, allowed: Sequence[str]) -> Callable[[object], tuple[str, ...]]:
    def check(value: object) -> tuple[str, ...]:
        given = check_texts(name, value)
        if not set(given) <= set(allowed):
            raise InvalidInputError(f"{name} must be some of {', '.join(allowed)}, not {shown(value)}")
        return given

    return check


def _data_condition(value: object) -> Mapping[str, Json]:
    wrong = value  # not narrowed by the next line, which leaves type checkers with half a type
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"data must be a mapping of keys to plain values, not {shown(wrong)}")
    given = cast("Mapping[str, Json]", value)
    check_size("data", len(given), MAX_CONDITIONS, "conditions", _FEWER)
    data: dict[str, Json] = check_json("data", given, MAX_VALUE_BYTES)[0]
    for name, item in data.items():
        if isinstance(item, list | dict):
            raise InvalidInputError(f"data can be filtered by plain values only, not {shown(name)}: {shown(item)}")
    return data


def _matching(value: object) -> tuple[Condition, ...]:
    return _Tree().checked(value)


class _Tree:
    """Checks a tree of conditions and counts its parts, because the limits apply to the whole tree."""

    def __init__(self) -> None:
        self._conditions = self._alternatives = self._bytes = 0

    def checked(self, value: object, level: int = 0) -> tuple[Condition, ...]:
        """The conditions of one group, or those of `Where.matching`."""
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise InvalidInputError(f"matching must be a sequence of conditions, not {shown(value)}")
        given = cast("Sequence[object]", value)
        self._conditions += len(given)
        check_size("matching", self._conditions, MAX_CONDITIONS, "conditions", _FEWER)
        check_size("matching", level, MAX_GROUP_LEVELS, "levels of groups", "flatten it")
        return tuple([self._condition(item, level) for item in given])

    def _condition(self, given: object, level: int) -> Condition:
        if isinstance(given, GROUPS):
            return type(given)(self.checked(given.conditions, level + 1))
        if not isinstance(given, DataCondition | FieldCondition):
            raise InvalidInputError(
                f"matching takes DataCondition(path, op, value), FieldCondition(field, op, value), AnyOf, AllOf and "
                f"NoneOf, not {shown(given)}"
            )
        check_one_of("op", given.op, COMPARISONS)
        if isinstance(given, DataCondition):
            path = tuple(_step(step) for step in _steps(given.path))
            return replace(given, path=path, value=self._compared(given, _as_it_is))
        return replace(given, value=self._compared(given, _field_check(given)))

    def _compared(self, given: DataCondition | FieldCondition, check: Callable[[object], object]) -> object:
        """The value or values that the condition compares with, each checked."""
        op, value = given.op, given.value
        if op == "exists":
            if not isinstance(value, bool):
                raise InvalidInputError(f"exists takes true or false, not {shown(value)}")
            return value
        several = _several(op, value) if op in _LISTS else None
        if several is not None and op != "between":
            self._alternatives += len(several)
            check_size(op, self._alternatives, MAX_ALTERNATIVES, "values in all conditions together", "ask in parts")
        if isinstance(given, DataCondition):
            value = self._json(value if several is None else list(several))
        if several is not None:
            values = [check(one) for one in cast("Sequence[object]", value)]
            return tuple(_span(values) if op == "between" else values)
        return _comparable(op, check(value))

    def _json(self, value: object) -> object:
        checked, size = check_json("the value of a condition", value, MAX_VALUE_BYTES)
        self._bytes += size
        check_size("matching", self._bytes, MAX_VALUE_BYTES, "bytes of values as JSON", "compare with smaller values")
        return checked


def _as_it_is(value: object) -> object:
    return value


def _comparable(op: Comparison, value: object) -> object:
    if op in _PATTERNS and not isinstance(value, str):
        raise InvalidInputError(f"{op} takes a text, not {shown(value)}")
    if op == "like" and isinstance(value, str):
        check_size("a pattern", len(value), MAX_PATTERN_CHARS, "characters", "compare with a part of it")
    if op in _ORDERS and not _has_order(value):
        raise InvalidInputError(f"{op} compares moments, numbers or texts; {shown(value)} has no order")
    return value


def _several(op: Comparison, value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(f"{op} takes an array of values, not {shown(value)}")
    values = cast("Sequence[object]", value)
    if op == "between" and len(values) != 2:
        raise InvalidInputError(f"between takes the least and the greatest value, not {len(values)} values")
    return values


def _span(values: Sequence[object]) -> Sequence[object]:
    least, greatest = values
    if not _has_order(least) or not _has_order(greatest) or isinstance(least, str) != isinstance(greatest, str):
        raise InvalidInputError(f"between takes two moments, two numbers or two texts, not {shown(values)}")
    return values


def _has_order(value: object) -> bool:
    return isinstance(value, int | float | str | datetime) and not isinstance(value, bool)


def _steps(path: object) -> Sequence[object]:
    wrong = path
    if not isinstance(path, Sequence) or isinstance(path, str) or not path:
        raise InvalidInputError(f"path must have keys, such as ['address', 'city'], not {shown(wrong)}")
    steps = cast("Sequence[object]", path)
    check_size("path", len(steps), MAX_DATA_LEVELS, "steps", "data is not nested more deeply")
    return steps


def _step(step: object) -> str | int:
    if isinstance(step, str):
        check_size(
            "a step of a path", len(step), MAX_KEY_CHARS, "characters", "use shorter keys in data to filter by them"
        )
        return step
    if isinstance(step, int) and not isinstance(step, bool) and 0 <= step <= MAX_DATA_BYTES:
        return step
    raise InvalidInputError(f"a path is made of keys and of positions from 0 on, not of {shown(step)}")


def _field_check(given: FieldCondition) -> Callable[[object], object]:
    if given.field not in tuple(_VALUES):
        raise InvalidInputError(f"a FieldCondition compares {', '.join(_VALUES)}, not {shown(given.field)}")
    is_name = given.field in _NAMED
    if given.op in (*_ORDERS, "between", "like") if is_name else given.op in _PATTERNS:
        raise InvalidInputError(
            f"{given.op} does not compare {given.field}: moments and numbers have an order, and names a beginning"
        )
    return _VALUES[given.field]


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise InvalidInputError(f"{name} is compared with a number of at most 2**53, not {shown(value)}")
    return value


_LARGEST: Final = 2**53
"""Up to this value floats represent every whole number exactly."""
_NAMED: Final = (*NAME_FIELDS, TAGS)
_LISTS: Final = ("in", "nin", "between")
_ORDERS: Final = ("gt", "gte", "lt", "lte")
_PATTERNS: Final = ("starts_with", "like")
_FEWER: Final = "ask for less, or filter what is found"
_VALUES: Final[Mapping[str, Callable[[object], Any]]] = {
    **{name: or_none(check_time, name) for name in TIME_FIELDS},
    **{name: or_none(_number, name) for name in NUMBER_FIELDS},
    **{name: or_none(check_listed, name) for name in _NAMED},
}
"""For each field, the check of the values it may be compared with."""
_CONDITIONS: Final[Mapping[str, Callable[[object], Any]]] = {
    "roles": _some_of("roles", ROLES),
    "kinds": _texts("kinds"),
    "tiers": _some_of("tiers", TIERS),
    "tags_any": _texts("tags_any"),
    "tags_all": _texts("tags_all"),
    "keywords": _keywords,
    **{name: or_none(check_name, name) for name in EQUAL_FIELDS},
    "under": or_none(check_key, "under"),
    "min_importance": or_none(check_unit, "min_importance"),
    "min_confidence": or_none(check_unit, "min_confidence"),
    "since": or_none(check_time, "since"),
    "until": or_none(check_time, "until"),
    "as_of": or_none(check_time, "as_of"),
    "links": check_links,
    "states": _some_of("states", STATES),
    "left": or_none(check_flag, "left"),
    "data": _data_condition,
    "matching": _matching,
    "ids": _texts("ids"),
    "source_keys": _texts("source_keys"),
}
_DEFAULTS: Final[Mapping[str, object]] = {name: getattr(Where(), name) for name in _CONDITIONS}
