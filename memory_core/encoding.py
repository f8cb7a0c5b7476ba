"""`data` as JSON text: the form in which it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from memory_core.checks import shown
from memory_core.errors import InvalidInputError
from memory_core.limits import MAX_DATA_LEVELS, check_size
from memory_core.yielding_work import yield_now

_encode_json: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode_json(value: object) -> str:
    """Compact JSON in ASCII, the form in which data is stored."""
    return _encode_json(value)


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
