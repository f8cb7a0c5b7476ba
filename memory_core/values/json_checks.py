"""Checks of JSON that callers pass, such as the `data` of a record, before it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from memory_core.concurrency.threads import yield_now
from memory_core.errors import InvalidInputError
from memory_core.values.checks import check_size, shown
from memory_core.values.json_text import encode_json, json_bytes
from memory_core.values.limits import MAX_DATA_BYTES, MAX_DATA_LEVELS, MAX_DATA_VALUES


def fits_data(value: object) -> bool:
    """True if a value that is JSON is within the limits of a record's `data`."""
    try:
        return least_bytes("data", value, MAX_DATA_BYTES) <= MAX_DATA_BYTES and json_bytes(value) <= MAX_DATA_BYTES
    except InvalidInputError:  # too many values, or too many levels
        return False


def check_json(name: str, value: object, most: int) -> tuple[Any, int]:
    """A copy of a JSON value and its size (see `json_bytes`), if it would come back unchanged and has at most `most`
    bytes."""
    check_size(name, least_bytes(name, value, most), most, "bytes as JSON, or more", "keep large things in a file")
    yield_now()
    try:
        text = encode_json(value)
        size = json_bytes(value) if "\\u" in text else len(text)
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInputError(f"{name} must be JSON: {cause}") from cause
    check_size(name, size, most, "bytes as JSON", "keep large things in a file")
    yield_now()
    copy = json.loads(text)
    yield_now()
    if copy != value:
        raise InvalidInputError(
            f"{name} would not come back as given (tuples, numeric keys and the like are not JSON): {shown(value)}"
        )
    return copy, size


def least_bytes(name: str, value: object, enough: int) -> int:
    """A lower bound of a value's size as JSON, in bytes; counting stops once it exceeds `enough`.

    Raises:
        InvalidInputError: It is nested too deeply, contains itself, or has more than `MAX_DATA_VALUES` values.
    """
    size, count, inside = 0, 0, [value]
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
                count += (2 if isinstance(inner, Mapping) else 1) * len(inner)
                if size <= enough:
                    check_size(name, count, MAX_DATA_VALUES, "values", "keep large things in a file")
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
