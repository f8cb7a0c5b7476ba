"""The base class of the values that callers pass and receive: their JSON form and their short `repr`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, cast, get_type_hints

from memory_core.errors import InvalidInputError
from memory_core.hints import no_field, no_item
from memory_core.values.checks import shown
from memory_core.values.reading import inner, read
from memory_core.values.unset import UNSET

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


MAX_VALUE_CHARS: Final = 60
"""Maximum length of a text inside a `repr`."""


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
            return {name: _plain(value) for name, value in given_fields(self)}
        except RecursionError as cause:
            raise InvalidInputError(f"this {type(self).__name__} is nested too deeply for JSON") from cause

    @classmethod
    def from_dict(cls, given: Mapping[str, object], *, place: str = "") -> Self:
        """Restore a value from `to_dict`; missing fields take their default, and sequences become tuples.

        Args:
            given: The JSON object.
            place: The place where it stands in what somebody has sent, such as `where`: errors name fields by their
                place there.

        Raises:
            InvalidInputError: A field is unknown, required but missing, of another type, or nested too deeply; the
                message names it, in the words of JSON.
        """
        here = place or "this"
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # untrusted JSON
            raise InvalidInputError(f"{here} must be a JSON object, not {shown(given)}")
        hints, known = hints_of(cls), {each.name: each for each in _fields(cls)}
        unknown = [name for name in given if name not in known]
        if unknown:
            inside = f" in {place}" if place else ""
            raise InvalidInputError(f"there is no field {shown(unknown[0])}{inside}; there are {', '.join(known)}")
        missing = [name for name, each in known.items() if name not in given and _default(each) is MISSING]
        if missing:
            raise InvalidInputError(f"{inner(place, missing[0])} is missing")
        try:
            return cls(**{name: read(hints[name], value, inner(place, name)) for name, value in given.items()})
        except RecursionError as cause:
            raise InvalidInputError(f"{here} is nested too deeply, or contains itself; flatten it") from cause

    if not TYPE_CHECKING:  # else every name would be an attribute, and every value a sequence

        def __getattr__(self, name: str) -> NoReturn:
            raise no_field(self, name, [each.name for each in _fields(type(self))])

        def __getitem__(self, key: object) -> NoReturn:
            raise no_item(self, key, [each.name for each in _fields(type(self))])

    def __repr__(self) -> str:
        differing = [(each.name, getattr(self, each.name), _default(each)) for each in _fields(type(self))]
        shown_fields = (f"{name}={brief(value)}" for name, value, default in differing if value != default)
        return f"{type(self).__name__}({', '.join(shown_fields)})"


def brief(value: object) -> str:
    """The `repr` of a value, shortened if it is long."""
    if isinstance(value, str) and len(value) > MAX_VALUE_CHARS:
        return f"{value[: MAX_VALUE_CHARS - 1]!r}…"
    return repr(value)


def _fields(cls: type[Value]) -> tuple[Field[Any], ...]:
    return fields(cast("type[DataclassInstance]", cls))


def hints_of(cls: type[Value]) -> Mapping[str, Any]:
    """The type of each field of a value."""
    return _all_hints(cast("type", cls))  # mypy does not see that these classes are hashable


@cache
def _all_hints(cls: type) -> Mapping[str, Any]:
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in _fields(cls)}


def _default(each: Field[Any]) -> object:
    return each.default if each.default_factory is MISSING else each.default_factory()


def given_fields(value: Value) -> Iterator[tuple[str, object]]:
    """The name and the content of each field that is set."""
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
        return {name: _plain(item) for name, item in given_fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    raise InvalidInputError(f"JSON has no form for {shown(value)}")
