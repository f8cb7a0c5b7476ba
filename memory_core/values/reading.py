"""Reading a value from JSON into the type of a field.

An error names a field by its place in the JSON (`links.0.relation`), never by a type of ours: who sent it may not know
Python.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from memory_core.errors import InvalidInputError
from memory_core.values.checks import shown
from memory_core.values.unset import Unset

_SCALARS: Final[Mapping[object, tuple[type, ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (float, int),
    types.NoneType: (types.NoneType,),
}

_MOST_PLACE_CHARS: Final = 120
"""Characters of a place, of which a longer one shows the end."""
_NAMES: Final[Mapping[object, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    types.NoneType: "null",
    tuple: "a list",
    Sequence: "a list",
}


def inner(place: str, step: object) -> str:
    """The place of a field or of an item inside the value at a place."""
    outer = place if len(place) <= _MOST_PLACE_CHARS else f"…{place[-_MOST_PLACE_CHARS:]}"
    return f"{outer}.{step}" if place else str(step)


def read(hint: Any, value: object, name: str) -> Any:
    """Convert `value` from JSON to the type of a field; `name` is its place."""
    if hint in {Any, object}:
        return value
    if hint in _SCALARS:
        if isinstance(value, _SCALARS[hint]) and (hint is bool or not isinstance(value, bool)):
            return value
    elif hint is datetime:
        return _moment(value, name)
    elif is_dataclass(hint):
        kind: Any = hint  # a `Value`, whose module imports this one
        return value if isinstance(value, kind) else kind.from_dict(value, place=name)
    elif hint is not Unset:
        return _read_generic(hint, value, name)
    raise InvalidInputError(f"{name} must be {_named(hint)}, not {shown(value)}")


def _read_generic(hint: Any, value: object, name: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return _read_one_of(hint, value, name)
    if origin is Literal and value in arguments:
        return value
    if origin in {tuple, Sequence} and isinstance(value, list | tuple):
        items = enumerate(cast("Sequence[object]", value))
        return tuple(read(arguments[0], item, inner(name, number)) for number, item in items)
    if origin is Mapping and isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {read(arguments[0], key, name): read(arguments[1], item, inner(name, key)) for key, item in pairs}
    raise InvalidInputError(f"{name} must be {_named(hint)}, not {shown(value)}")


def _read_one_of(hint: Any, value: object, name: str) -> Any:
    """The value as the first type of a union that accepts it, else the error of the one that it resembles most."""
    kinds = sorted(_kinds(hint), key=lambda kind: _likeness(kind, value))
    if value is None and types.NoneType in get_args(hint):
        return None
    for kind in kinds:
        try:
            return read(kind, value, name)
        except InvalidInputError as error:
            is_meant = kind is kinds[-1] and (len(kinds) == 1 or _likeness(kind, value) > 0)
            if is_meant or isinstance(error.__cause__, RecursionError):
                raise  # no other type would accept it, nor say why
    raise InvalidInputError(f"{name} must be {_named(hint)}, not {shown(value)}")


def _kinds(hint: Any) -> list[Any]:
    """The types of a union, without those that stand for no value."""
    return [kind for kind in get_args(hint) if kind not in {types.NoneType, Unset}]


def _likeness(kind: Any, value: object) -> int:
    """The number of fields of the type that a JSON object has."""
    if not is_dataclass(kind) or not isinstance(value, Mapping):
        return 0
    return sum(each.name in value for each in fields(kind))


def _moment(value: object, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(cast("str", value))
    except (TypeError, ValueError) as cause:
        raise InvalidInputError(f"{name} must be a time in ISO 8601, not {shown(value)}") from cause


def _named(hint: Any) -> str:
    """The form of a value of that type in JSON."""
    if get_origin(hint) in {Union, types.UnionType}:
        kinds = _kinds(hint)
        words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        others = [_named(kind) for kind in kinds if get_origin(kind) is not Literal]
        return " or ".join(dict.fromkeys([*others, *([f"one of {', '.join(words)}"] if words else [])]))
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if is_dataclass(hint):
        return f"a JSON object of {', '.join(each.name for each in fields(hint))}"
    return _NAMES.get(get_origin(hint) or hint, "a JSON object")
