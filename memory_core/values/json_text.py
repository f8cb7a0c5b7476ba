"""JSON as text: its form in the store, and its size in bytes."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

encode_json: Final[Callable[[object], str]] = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""Compact JSON in ASCII, the form in which data is stored."""

_encode_unescaped: Final[Callable[[object], str]] = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, ensure_ascii=False
).encode

_encode_sorted: Final[Callable[[object], str]] = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def is_same_json(one: object, other: object) -> bool:
    """True if two JSON values are the same: unlike `==`, `1`, `1.0` and `true` differ. The order of keys is ignored."""
    return one == other and (not one or _encode_sorted(one) == _encode_sorted(other))


def json_bytes(value: object) -> int:
    """The size of a JSON value in bytes, as compact JSON in UTF-8.

    The stored form has up to six times as many bytes in other scripts than Latin; limits that count those would allow
    their writers a sixth of the text.

    Raises:
        TypeError, ValueError, RecursionError: It is not JSON.
    """
    return len(_encode_unescaped(value).encode(errors="surrogatepass"))  # JSON may contain lone surrogates


def text_bytes(text: str) -> int:
    """The number of bytes of a text as a JSON string in UTF-8, without the quotes."""
    return json_bytes(text) - 2


def cut_to_bytes(text: str, most: int) -> str:
    """The longest beginning of a text that has at most `most` bytes (see `text_bytes`)."""
    shortened = text[:most]  # each character has at least one byte
    if text_bytes(shortened) <= most:
        return shortened
    return shortened[: bisect_right(range(len(shortened)), most, key=lambda last: text_bytes(shortened[: last + 1]))]
