"""The arguments that a model passed to a tool, coerced and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

from memory_core.errors import MemoryCoreError
from memory_core.values.checks import shown

MAX_RESULTS: Final = 50
"""Maximum number of memories in a tool's answer."""


class ToolInputError(MemoryCoreError, ValueError):
    """A model called a tool with an argument it cannot use."""


class Arguments:
    """The arguments a model passed, coerced: models write numbers and objects as text, and omit required values.

    Raises:
        ToolInputError: The arguments are not a JSON object. Every method raises it for an invalid value.
    """

    def __init__(self, given: object) -> None:
        self._given = _object("the arguments", given) or {}

    def text(self, name: str) -> str:
        """A required, non-blank string."""
        value = self._given.get(name)
        if not isinstance(value, str) or not value.strip():
            raise ToolInputError(f"{name!r} must be a non-empty string, not {shown(value)}")
        return value.strip()

    def optional_text(self, name: str) -> str | None:
        """A string, or `None` when missing, null or blank."""
        value = self._given.get(name)
        return None if value is None or (isinstance(value, str) and not value.strip()) else self.text(name)

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """One of `allowed` (case and surrounding space do not matter), or `None` when missing."""
        value = self.optional_text(name)
        if value is None or value in allowed:
            return value
        for choice in allowed:
            if choice.lower() == value.lower():
                return choice
        raise ToolInputError(f"{name!r} must be one of {', '.join(allowed)}, not {shown(value)}")

    def count(self, name: str, default: int) -> int:
        """A whole number clamped to 1..MAX_RESULTS; `default` when it is missing or not a number."""
        number = _number(self._given.get(name))
        return default if number is None else int(min(max(number, 1), MAX_RESULTS))

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean, also as text; `default` when missing, null or blank."""
        value = self._given.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        said = str(value).strip().lower()
        if said not in ("true", "false", ""):
            raise ToolInputError(f"{name!r} must be true or false, not {shown(value)}")
        return said == "true" if said else default

    def number(self, name: str, *, above: float) -> float | None:
        """A number greater than `above`, or `None` when missing, null or blank."""
        value = self._given.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        number = _number(value)
        if number is None or number <= above:
            raise ToolInputError(f"{name!r} must be a number above {above:g}, not {shown(value)}")
        return number

    def object(self, name: str) -> Mapping[str, object]:
        """A JSON object, also as text; empty when missing, null or blank."""
        return _object(repr(name), self._given.get(name)) or {}


def _number(value: object) -> float | None:
    """A finite number, also as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def _object(what: str, value: object) -> Mapping[str, object] | None:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as cause:
            raise ToolInputError(f"{what} must be a JSON object, not {shown(value)}") from cause
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, Mapping):
        raise ToolInputError(f"{what} must be a JSON object, not {shown(value)}")
    return cast("Mapping[str, object]", value)
