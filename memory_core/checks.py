"""Checks of single values, and the limits of a call, each with its unit and its reason.

Each check returns the value, or raises an error that says what is wrong with it. Input that exceeds a limit is refused
with an `InvalidInputError` that gives the size, the limit and the way out. The limits are far beyond what agents need
and small enough that no single call keeps other users of the process waiting. The adapters and the tools cut a query to
`MAX_QUERY_CHARS`, because a model or a user wrote it and could not act on an error.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from reprlib import Repr
from typing import Final, TypeGuard, cast

from memory_core.errors import InvalidInputError

MAX_QUERY_CHARS: Final = 10_000
"""Characters of a query: several pages. Embedders read a few hundred words; keyword search uses the rest, too."""
MAX_QUERY_TERMS: Final = 512
"""Most distinct words of a query that are searched for; of a longer query the first and the last half. Each takes a few
microseconds."""
MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of the text of one record: a long book. A longer text is better stored in parts, which are also found."""
MAX_DATA_BYTES: Final = 1_000_000
"""Bytes of the `data` of one record as compact JSON in ASCII. Put larger content into a file named in `data`."""
MAX_DATA_LEVELS: Final = 200
"""Levels of nesting in `data`, so that comparing it cannot exhaust the stack."""
MAX_KEY_CHARS: Final = 512
"""Characters of a name: scope key, id, source key, kind, author, emotion, tag, or keyword of a condition."""
MAX_TAGS: Final = 256
"""Tags of one record."""
MAX_LINKS: Final = 1_000
"""Links of one record, and of `Where.links`."""
MAX_PASSAGES: Final = 1_000
"""Passages of one draft, and parts of a text that form feeds end: of more of them, the rest is one part."""
MAX_LIMIT: Final = 10_000
"""Records that one search or one page returns."""
MAX_DIMENSIONS: Final = 65_536
"""Numbers in a vector passed by the caller; no known model makes a twentieth of it."""

MAX_LISTED: Final = 10_000
"""Names in one list of a `Where` (`ids`, `source_keys`, `kinds`, tags), in `remove` of `put_many` and in `postpone`: as
many as a page has records."""
MAX_KEYWORDS: Final = 100
"""Keywords of a `Where`; each is searched for in every text."""
MAX_CONDITIONS: Final = 100
"""Conditions in `Where.matching`, groups included, and keys in `Where.data`."""
MAX_GROUP_LEVELS: Final = 10
"""Levels of nesting of `AnyOf`, `AllOf` and `NoneOf`."""
MAX_ALTERNATIVES: Final = 1_000
"""Values of all `in` and `nin` conditions of one `Where` together."""
MAX_VALUE_BYTES: Final = 100_000
"""Bytes of all values that the `DataCondition`s of one `Where` compare with, and of its `data`, as compact JSON in
ASCII."""

LONG_CHARS: Final = 1_000
"""Characters whose analysis takes about a millisecond; longer texts are not analysed on the core loop."""
_MICROSECOND: Final = timedelta(microseconds=1)
_WIDE: Final = 8
"""A character outside ASCII takes as long as this many ASCII characters."""


def is_long(*texts: str) -> bool:
    """Whether the analysis of these texts would block a loop for longer than about a millisecond."""
    return sum(len(text) * (1 if text.isascii() else _WIDE) for text in texts) > LONG_CHARS


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
        raise error(f"{name} must be a string, not {type(value).__name__}: {shown(value)}")
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
    if value.tzinfo is None:
        raise InvalidInputError(f"{name} {value.isoformat()} has no time zone; add one, such as tzinfo=UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError as cause:
        raise InvalidInputError(f"{name} {value.isoformat()} is outside the years 1 to 9999 in UTC") from cause


def shifted(moment: datetime, by: timedelta) -> datetime:
    """The moment so much later or earlier; beyond the first or the last moment that can be stored, that one."""
    try:
        return moment + by
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if by > timedelta() else datetime.min.replace(tzinfo=UTC)


def until_after(moment: datetime) -> datetime | None:
    """The `Where.until` that still admits this moment."""
    later = shifted(moment, _MICROSECOND)
    return later if later > moment else None


def check_texts(name: str, value: object, most: int = MAX_LISTED) -> tuple[str, ...]:
    """Return `value` if it is a sequence of names to look for; it may be empty, but not a single string."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidInputError(f"{name} must be a sequence of strings, not {shown(value)}")
    given = cast("Collection[object]", value)
    check_size(name, len(given), most, "values", "ask for some of them at a time")
    texts = tuple(given)
    return texts if _are_names(texts) else tuple(check_listed(name, text) for text in texts)


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


def _are_names(values: tuple[object, ...]) -> TypeGuard[tuple[str, ...]]:
    """Whether `check_listed` accepts all of them; ten times as fast, because lists can be long."""
    if set(map(type, values)) != {str}:
        return not values
    texts = cast("tuple[str, ...]", values)
    if max(map(len, texts)) > MAX_KEY_CHARS:
        return False
    joined = "".join(texts)
    return "\0" not in joined and (joined.isascii() or _fits_utf8(joined))


def _fits_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of a closed set."""
    if value not in allowed:
        raise InvalidInputError(f"{name} must be one of {', '.join(allowed)}, not {shown(value)}")


def check_limit(value: object) -> int:
    """Return `value` if it can be the number of records that a search or a page returns."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {shown(value)}")
    return value


def is_later(embed: object) -> bool:
    """Whether vectors are computed after a write has returned."""
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


_BRIEF: Final = _Brief()
