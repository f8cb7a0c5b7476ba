"""Checks of single values.

Each check returns the value, or raises an error that says what is wrong with it. Input that exceeds a limit
(`limits.py`) is refused with an `InvalidInputError` that gives the size, the limit and the way out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, tzinfo
from inspect import iscoroutinefunction, isfunction, ismethod
from reprlib import Repr
from typing import Final, TypeVar, cast

from memory_core.errors import InvalidInputError
from memory_core.values.limits import MAX_KEY_CHARS, MAX_LIMIT, MAX_LISTED, MAX_QUERY_CHARS
from memory_core.values.times import at_offset, in_zone, names_place, offset_of

T = TypeVar("T")


def check_size(name: str, size: int, limit: int, unit: str, way_out: str) -> None:
    """Refuse a size above its limit.

    Raises:
        InvalidInputError: `size` exceeds `limit`.
    """
    if size > limit:
        raise InvalidInputError(f"{name} has {size} {unit}; at most {limit} are allowed: {way_out}")


def check_key(name: str, value: object, error: type[InvalidInputError] = InvalidInputError) -> str:
    """Return `value` if it can be a key: a non-blank string without NUL of at most `MAX_KEY_CHARS` characters."""
    if not isinstance(value, str):
        raise error(f"{name} must be a string, not {shown(value)}")
    if len(value) > MAX_KEY_CHARS:
        raise error(f"{name} has {len(value)} characters; at most {MAX_KEY_CHARS} are allowed: {value[:40]!r}…")
    if not value.strip():
        raise error(
            f"{name} must not be empty (got {shown(value)}); memories without an owner or name are never shared"
        )
    if "\0" in value:
        raise error(f"{name} must not contain a NUL character: {shown(value)}")
    check_text(name, value, error)
    return value


def check_text(name: str, value: object, error: type[InvalidInputError] = InvalidInputError) -> str:
    """Return `value` if it is text that UTF-8 can encode."""
    if not isinstance(value, str):
        raise error(f"{name} must be a string, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as cause:
        bad = value[cause.start]
        raise error(
            f"{name} contains {bad!r} at position {cause.start}, a lone surrogate, which UTF-8 cannot encode; "
            "decode the input with errors='replace'"
        ) from cause
    return value


def check_query(query: object) -> str:
    """Return `query` if it is text that a search accepts."""
    if isinstance(query, str):
        check_size("query", len(query), MAX_QUERY_CHARS, "characters", "cut it, or ask for what matters in it")
    return check_text("query", query)


def check_seconds(name: str, value: object, *, or_zero: bool = False) -> float:
    """Return a number of seconds that somebody is ready to wait."""
    seconds = value if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
    if not (0 < seconds < math.inf or (or_zero and seconds == 0)):
        least = "from" if or_zero else "above"
        raise InvalidInputError(f"{name} must be a number of seconds {least} 0, such as 5, not {shown(value)}")
    return float(seconds)


def check_unit(name: str, value: object) -> float:
    """Return `value` as a float in 0..1."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidInputError(f"{name} must be a number from 0 to 1, not {shown(value)}")
    return float(value)


def check_time(name: str, value: object) -> datetime:
    """Return `value` in UTC if it is an aware datetime."""
    if not isinstance(value, datetime):
        raise InvalidInputError(f"{name} must be a datetime, not {shown(value)}")
    if value.utcoffset() is None:
        raise InvalidInputError(f"{name} {value.isoformat()} has no time zone; add one, such as +00:00 for UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError as cause:
        raise InvalidInputError(f"{name} {value.isoformat()} is outside the years 1 to 9999 in UTC") from cause


def check_local_time(name: str, value: object, zone: tzinfo = UTC) -> datetime:
    """Return `value` with its own offset from UTC, in whole minutes, if it is an aware datetime; a time in UTC, which
    names no place, gets the offset of `zone`."""
    moment = check_time(name, value)
    if value is moment and zone is UTC:
        return moment
    given = cast("datetime", value)
    return at_offset(moment, offset_of(given if names_place(given) else in_zone(moment, zone)))


def check_texts(name: str, value: object, most: int = MAX_LISTED) -> tuple[str, ...]:
    """Return `value` if it is a sequence of names to look for; it may be empty, but not a single string."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidInputError(f"{name} must be a sequence of strings, not {shown(value)}")
    given = cast("Collection[object]", value)
    check_size(name, len(given), most, "values", "ask for some of them at a time")
    return tuple(check_listed(name, text) for text in given)


def check_listed(name: str, value: object) -> str:
    """Return `value` if it is a name to look for; an empty name matches nothing."""
    return check_name(f"one of {name}", value)


def check_name(name: str, value: object) -> str:
    """Return `value` if it can be the name in a field; unlike a key it may be blank, and then matches nothing."""
    if isinstance(value, str):
        check_size(name, len(value), MAX_KEY_CHARS, "characters", "no name is longer")
    text = check_text(name, value)
    if "\0" in text:
        raise InvalidInputError(f"{name} must not contain a NUL character: {shown(text)}")
    return text


def check_one_of(name: str, value: object, allowed: Sequence[T]) -> T:
    """Return `value` if it is one of a closed set of words."""
    if value not in allowed:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(str, allowed))}, not {shown(value)}")
    return cast("T", value)


def check_flag(name: str, value: object) -> bool:
    """Return `value` if it is true or false."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} must be True or False, not {shown(value)}")
    return value


def check_limit(value: object) -> int:
    """Return `value` if it can be the number of records that a search or a page returns."""
    return check_count("limit", value, 1)


def check_count(name: str, value: object, least: int, most: int = MAX_LIMIT) -> int:
    """Return `value` if it is a whole number within these bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInputError(f"{name} must be a whole number from {least} to {most}, not {shown(value)}")
    return value


def check_summarizer(value: object) -> None:
    """Refuse what is neither `None` nor a `Summarizer`."""
    check_helper("summarizer", value, "summarize", "`LanguageModel(ask)`, which makes one of a function `ask(prompt)`")


def check_helper(name: str, value: object, method: str, examples: str) -> None:
    """Refuse what is neither `None` nor an object with this asynchronous method, before anything relies on it."""
    found = None if isinstance(value, type) else getattr(value, method, None)
    is_blocking = (isfunction(found) or ismethod(found)) and not iscoroutinefunction(found)
    if value is not None and (is_blocking or not callable(found)):
        raise InvalidInputError(
            f"{name} must be None or an object with `async def {method}(...)`, such as {examples}; not {shown(value)}"
        )


def is_later(embed: object) -> bool:
    """True if vectors are computed after a write has returned."""
    check_one_of("embed", embed, ("now", "later"))
    return embed == "later"


def shown(value: object) -> str:
    """Any value in the short form in which error messages quote it."""
    try:
        return _BRIEF.repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, an object that contains itself
        return f"a {type(value).__name__}"


class _Brief(Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxdict = 3, 4, 4
        self.maxstring = self.maxother = 80

    def repr_datetime(self, moment: datetime, _level: int) -> str:
        """As a caller may have sent it: ISO 8601."""
        return moment.isoformat()


_BRIEF: Final = _Brief()
