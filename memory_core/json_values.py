"""Values as plain JSON and back, as one short line, and as tables that notebooks show; `data` as JSON text."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, Union, cast, get_args, get_origin, get_type_hints

from memory_core.checks import MAX_DATA_LEVELS, check_size, shown
from memory_core.errors import InvalidInputError
from memory_core.threads import yield_now

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


MAX_SHOWN_CHARS: Final = 60
"""Longest text inside a `repr`."""


class Value:
    """Base class of the frozen dataclasses of this library: plain JSON form and short `repr`."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}
    """Pydantic refuses unknown fields: a misspelt condition must not be dropped silently."""

    def to_dict(self) -> dict[str, Any]:  # what `json.loads` returns, too
        """All fields in JSON form: times as ISO 8601 texts, sequences as lists, nested values as objects.

        Raises:
            InvalidInputError: A field contains something JSON cannot express, which no store would have accepted.
        """
        try:
            return {name: _plain(value) for name, value in _given(self)}
        except RecursionError as cause:
            raise InvalidInputError(f"this {type(self).__name__} is nested too deeply for JSON") from cause

    @classmethod
    def from_dict(cls, given: Mapping[str, object]) -> Self:
        """Restore a value from `to_dict`; missing fields take their default, and sequences become tuples.

        Raises:
            InvalidInputError: A field is unknown, required but missing, or of another type; the message names it.
        """
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # untrusted JSON
            raise InvalidInputError(f"a {cls.__name__} is made from a JSON object, not from {shown(given)}")
        hints, known = _hints(cls), {each.name: each for each in _fields(cls)}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InvalidInputError(f"a {cls.__name__} has no {shown(unknown[0])}; it has {', '.join(known)}")
        missing = [name for name, each in known.items() if name not in given and _default(each) is MISSING]
        if missing:
            raise InvalidInputError(f"a {cls.__name__} needs {missing[0]!r}")
        return cls(**{name: _read(hints[name], value, f"{cls.__name__}.{name}") for name, value in given.items()})

    def __repr__(self) -> str:
        differing = [(each.name, getattr(self, each.name), _default(each)) for each in _fields(type(self))]
        shown_fields = (f"{name}={brief(value)}" for name, value, default in differing if value != default)
        return f"{type(self).__name__}({', '.join(shown_fields)})"


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"  # one per process, also after copying and pickling


UNSET: Final = Unset()
"""Leave this field of a `Patch` as it is (`None` would clear it)."""


def brief(value: object) -> str:
    """The `repr` of a value, shortened if it is long."""
    if isinstance(value, str) and len(value) > MAX_SHOWN_CHARS:
        return f"{value[: MAX_SHOWN_CHARS - 1]!r}…"
    return repr(value)


def partial_schema(cls: type[Value], handler: Any) -> Any:  # pydantic's types, which are not imported at run time
    """The pydantic schema of a value whose fields are all optional and serialised only if they are set."""
    from pydantic_core import core_schema as core  # noqa: PLC0415  (called by pydantic alone, so it is there)

    given = core.typed_dict_schema(
        {
            name: core.typed_dict_field(handler.generate_schema(_without_unset(hint)), required=False)
            for name, hint in _hints(cls).items()
        },
        cls_name=cls.__name__,
        extra_behavior="forbid",
    )
    made = core.no_info_after_validator_function(lambda values: cls(**values), given)
    return core.json_or_python_schema(
        made,
        core.union_schema([core.is_instance_schema(cls), made]),
        serialization=core.plain_serializer_function_ser_schema(lambda value: dict(_given(value)), return_schema=given),
    )


def _without_unset(hint: Any) -> Any:
    rest = tuple(each for each in get_args(hint) if each is not Unset)
    return Union[rest]  # noqa: UP007  (made at run time)


def _fields(cls: type[Value]) -> tuple[Field[Any], ...]:
    return fields(cast("type[DataclassInstance]", cls))


def _hints(cls: type[Value]) -> Mapping[str, Any]:
    return _all_hints(cast("type", cls))  # mypy does not see that these classes are hashable


@cache
def _all_hints(cls: type) -> Mapping[str, Any]:
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in _fields(cls)}


def _default(each: Field[Any]) -> object:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _given(value: Value) -> Iterator[tuple[str, object]]:
    for each in _fields(type(value)):
        item = getattr(value, each.name)
        if item is not UNSET:
            yield each.name, item


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Value):
        return {name: _plain(item) for name, item in _given(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    raise InvalidInputError(f"JSON has no form for {shown(value)}")


_SCALARS: Final[Mapping[object, tuple[type, ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (float, int),
    types.NoneType: (types.NoneType,),
}


def _read(hint: Any, value: object, name: str) -> Any:
    """Convert `value` from JSON to the type of a field."""
    if hint in {Any, object}:
        return value
    if hint in _SCALARS:
        if isinstance(value, _SCALARS[hint]) and (hint is bool or not isinstance(value, bool)):
            return value
    elif hint is datetime:
        return _moment(value, name)
    elif is_dataclass(hint):
        kind = cast("type[Value]", hint)
        return value if isinstance(value, kind) else kind.from_dict(cast("Mapping[str, object]", value))
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
        return tuple(_read(arguments[0], item, name) for item in cast("Sequence[object]", value))
    if origin is Mapping and isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {_read(arguments[0], key, name): _read(arguments[1], item, name) for key, item in pairs}
    raise InvalidInputError(f"{name} must be {_named(hint)}, not {shown(value)}")


def _read_one_of(hint: Any, value: object, name: str) -> Any:
    """The value as the first type of a union that accepts it; the only type besides `None` gives the best error."""
    kinds = [kind for kind in get_args(hint) if kind not in {types.NoneType, Unset}]
    if value is None and types.NoneType in get_args(hint):
        return None
    for kind in kinds[:-1]:
        try:
            return _read(kind, value, name)
        except InvalidInputError:
            continue
    return _read(kinds[-1], value, name)


def _moment(value: object, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(cast("str", value))
    except (TypeError, ValueError) as cause:
        raise InvalidInputError(f"{name} must be a time in ISO 8601, not {shown(value)}") from cause


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "").replace("collections.abc.", "")


MAX_CELL_CHARS: Final = 200
"""Longest text in a cell."""


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML; all cells are escaped."""
    header = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + "…"


encode_json: Final[Callable[[object], str]] = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""Compact JSON in ASCII, the form in which data is stored."""

_encode_sorted: Final[Callable[[object], str]] = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def is_same_json(one: object, other: object) -> bool:
    """Whether two JSON values are the same: unlike `==`, `1`, `1.0` and `true` differ. The order of keys is ignored."""
    return one == other and (not one or _encode_sorted(one) == _encode_sorted(other))


def check_json(name: str, value: object, most: int) -> tuple[Any, int]:
    """A copy of a JSON value and its size in bytes, if it would come back unchanged and has at most `most` bytes."""
    check_size(name, least_bytes(name, value, most), most, "bytes as JSON, or more", "keep large things in a file")
    yield_now()
    try:
        text = encode_json(value)
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInputError(f"{name} must be JSON: {cause}") from cause
    check_size(name, len(text), most, "bytes as JSON", "keep large things in a file")
    yield_now()
    copy = json.loads(text)
    yield_now()
    if copy != value:
        raise InvalidInputError(
            f"{name} would not come back as given (tuples, numeric keys and the like are not JSON): {shown(value)}"
        )
    return copy, len(text)


def least_bytes(name: str, value: object, enough: int) -> int:
    """A lower bound of a value's size as JSON, in bytes; counting stops once it exceeds `enough`.

    Raises:
        InvalidInputError: It is nested too deeply, or contains itself.
    """
    size, inside = 0, [value]
    for _ in range(MAX_DATA_LEVELS + 1):
        found: list[object] = []
        for outer in inside:
            if outer is None or isinstance(outer, int | float):
                continue
            if isinstance(outer, str):
                size += len(outer)
            elif isinstance(outer, Mapping | list | tuple):
                inner = cast("Mapping[object, object] | Sequence[object]", outer)
                size += (5 if isinstance(inner, Mapping) else 2) * len(inner)  # `"":1,` and `1,`
                if size <= enough:
                    found += _within(inner)
            if size > enough:
                return size
        if not found:
            return size
        inside = found
    raise InvalidInputError(f"{name} is nested more than {MAX_DATA_LEVELS} levels deep; flatten it: {shown(value)}")


def _within(outer: Mapping[object, object] | Sequence[object]) -> Iterable[object]:
    return (part for pair in outer.items() for part in pair) if isinstance(outer, Mapping) else outer
