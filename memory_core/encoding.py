"""`data` as JSON text: the form in which stores keep it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from memory_core.checks import shown
from memory_core.errors import InvalidInputError
from memory_core.limits import MAX_DATA_LEVELS, check_size
from memory_core.slices import give_way

_encode_json: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode_json(value: object) -> str:
    """Compact JSON in ASCII, the form in which data is stored."""
    return _encode_json(value)


def check_json(name: str, value: object, most: int) -> tuple[Any, int]:
    """A copy of a JSON value and its size, if it would come back exactly and has at most so many bytes."""
    check_size(name, least_bytes(name, value, most), most, "bytes as JSON, or more", "keep large things in a file")
    give_way()
    try:
        text = encode_json(value)
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInputError(f"{name} must be JSON: {cause}") from cause
    check_size(name, len(text), most, "bytes as JSON", "keep large things in a file")
    give_way()
    copy = json.loads(text)
    give_way()
    if copy != value:
        raise InvalidInputError(
            f"{name} would not come back as given (tuples, numeric keys and the like are not JSON): {shown(value)}"
        )
    return copy, len(text)


def least_bytes(name: str, value: object, enough: int) -> int:
    """At least how many bytes a value has as JSON, which takes no longer the more it exceeds `enough`.

    Raises:
        InvalidInputError: It is nested too deeply; so is what contains itself.
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
                held = cast("Mapping[object, object] | Sequence[object]", outer)
                size += (5 if isinstance(held, Mapping) else 2) * len(held)  # `"":1,` and `1,`
                if size <= enough:
                    found += _within(held)
            if size > enough:
                return size
        if not found:
            return size
        inside = found
    raise InvalidInputError(f"{name} is nested more than {MAX_DATA_LEVELS} levels deep; flatten it: {shown(value)}")


def _within(outer: Mapping[object, object] | Sequence[object]) -> Iterable[object]:
    return (part for pair in outer.items() for part in pair) if isinstance(outer, Mapping) else outer
