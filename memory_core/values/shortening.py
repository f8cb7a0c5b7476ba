"""A value that is too large to be stored is shortened where it is largest, with a mark: nothing is refused for its
size.

A text, and each text in a JSON value, keeps its beginning. Keys and small values stay, so that an id, a role or a type
is still there. Only a list or a mapping of so many small values that they do not fit keeps its first ones.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, cast

from memory_core.values.json_checks import fits_data
from memory_core.values.json_text import cut_to_bytes, json_bytes
from memory_core.values.limits import MAX_DATA_BYTES, MAX_DATA_LEVELS, MAX_DATA_VALUES, MAX_TEXT_CHARS

if TYPE_CHECKING:
    from memory_core.models import Json

SMALL_BYTES: Final = 300
"""A value of up to this size is never shortened."""
_MARK: Final = "[… {all:,} {unit}: too large to be remembered]"
_MARKED: Final = re.compile(r"\[… [\d,]{1,30} (?:characters|values): too large to be remembered\]\Z")
_MARK_BYTES: Final = 100
"""Most bytes of a mark as an item of a list or a mapping."""
_VALUE_BYTES: Final = MAX_DATA_BYTES // MAX_DATA_VALUES
"""The weight of a value beside its bytes, so that what has at most the bytes has at most the values, too."""
_LEVELS: Final = MAX_DATA_LEVELS - 10
"""Levels of what is shortened; deeper ones are a mark. The others are for what it becomes a part of."""


def shortened_text(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """The text, or its beginning with a mark, in at most `most` characters."""
    if len(text) <= most:
        return text
    mark = _MARK.format(all=len(text), unit="characters")
    return text[: max(most - len(mark), 0)] + mark


def shortened_data(data: Mapping[str, Json]) -> dict[str, Json]:
    """The data of a record within its limits: as it is, or with its largest parts shortened.

    Args:
        data: JSON of any size and depth.
    """
    if fits_data(data):
        return dict(data)
    return cast("dict[str, Json]", _Shortening().within(data, MAX_DATA_BYTES, _LEVELS))


def is_shortened(text: object) -> bool:
    """True if a value is a text that was shortened."""
    return isinstance(text, str) and _MARKED.search(text[-_MARK_BYTES:]) is not None


class _Shortening:
    """Shortens one value, whose parts it weighs once."""

    def __init__(self) -> None:
        self._weights: dict[int, float] = {}
        """Of lists and mappings, by identity: the value that is shortened holds them."""

    def within(self, value: Json, most: float, levels: int) -> Json:
        """The value in at most `most` bytes, which are at least `SMALL_BYTES`."""
        if self._weight(value, levels) <= most:
            return value
        if isinstance(value, str):
            return cut_to_bytes(value, int(most) - _MARK_BYTES) + _MARK.format(all=len(value), unit="characters")
        if levels == 0 or not isinstance(value, Mapping | list):
            return _MARK.format(all=len(value) if isinstance(value, Mapping | list) else 1, unit="values")
        names, parts = (list(value), list(value.values())) if isinstance(value, Mapping) else ([], value)
        inside = [self._weight(part, levels - 1) for part in parts]
        beside = [self._weight(name, 0) for name in names] or [0.0] * len(parts)
        least = accumulate(name + min(weight, SMALL_BYTES) for name, weight in zip(beside, inside, strict=True))
        room = most - _MARK_BYTES
        count = bisect_right(list(least), room)
        level = _level(inside[:count], room - sum(beside[:count]))
        kept = [self.within(part, level, levels - 1) for part in parts[:count]]
        if count < len(parts):
            kept.append(_MARK.format(all=len(parts), unit="values"))
        return dict(zip([*names[:count], "…"], kept, strict=False)) if isinstance(value, Mapping) else kept

    def _weight(self, value: Json, levels: int) -> float:
        """The bytes of a value as JSON, and some for each value; infinite if it has more levels."""
        if not isinstance(value, Mapping | list):
            return json_bytes(value) + _VALUE_BYTES
        if levels == 0:
            return math.inf
        if (known := self._weights.get(id(value))) is None:
            parts: list[Json] = [*value, *value.values()] if isinstance(value, Mapping) else value
            known = _VALUE_BYTES + sum(self._weight(part, levels - 1) for part in parts)
            self._weights[id(value)] = known
        return known


def _level(weights: Sequence[float], room: float) -> float:
    """The size that parts of these weights may have, the same for all, so that together they fit into the room."""
    rest = len(weights)
    for weight in sorted(weights):
        if weight * rest > room:
            return room / rest
        room, rest = room - weight, rest - 1
    return math.inf
