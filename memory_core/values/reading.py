"""Reading a value from JSON into the type of a field."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
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

_NAMES: Final[Mapping[object, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    types.NoneType: "null",
    tuple: "a list",
    Sequence: "a list",
}


def read(hint: Any, value: object, name: str) -> Any:
    """Convert `value` from JSON to the type of a field."""
    if hint in {Any, object}:
        return value
    if hint in _SCALARS:
        if isinstance(value, _SCALARS[hint]) and (hint is bool or not isinstance(value, bool)):
            return value
    elif hint is datetime:
        return _moment(value, name)
    elif is_dataclass(hint):
        kind: Any = hint  # a `Value`, whose module imports this one
        return value if isinstance(value, kind) else kind.from_dict(value)
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
        return tuple(read(arguments[0], item, name) for item in cast("Sequence[object]", value))
    if origin is Mapping and isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {read(arguments[0], key, name): read(arguments[1], item, name) for key, item in pairs}
    raise InvalidInputError(f"{name} must be {_named(hint)}, not {shown(value)}")


def _read_one_of(hint: Any, value: object, name: str) -> Any:
    """The value as the first type of a union that accepts it; the only type besides `None` gives the best error."""
    kinds = [kind for kind in get_args(hint) if kind not in {types.NoneType, Unset}]
    if value is None and types.NoneType in get_args(hint):
        return None
    for kind in kinds[:-1]:
        try:
            return read(kind, value, name)
        except InvalidInputError as error:
            if isinstance(error.__cause__, RecursionError):
                raise  # no other type would accept it, nor say why
    return read(kinds[-1], value, name)


def _moment(value: object, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(cast("str", value))
    except (TypeError, ValueError) as cause:
        raise InvalidInputError(f"{name} must be a time in ISO 8601, not {shown(value)}") from cause


def _named(hint: Any) -> str:
    """What a value of that type is in JSON."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    return _NAMES.get(get_origin(hint) or hint, "a JSON object")
