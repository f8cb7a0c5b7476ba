"""Cursors of pages: the start of the next page, as a string that callers pass back."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Order

MAX_CURSOR_CHARS: Final = 256
"""Longer than any valid cursor."""
_HUGE: Final = 1 << 63
"""Larger than the integers of databases."""


def encode_cursor(order: Order, *place: float | str) -> str:
    """A cursor for a position in this order."""
    return base64.urlsafe_b64encode(json.dumps([order, *place]).encode()).decode()


def decode_cursor(cursor: object, order: Order, types: tuple[type, ...]) -> tuple[Any, ...]:
    """The position that a cursor encodes.

    Args:
        cursor: The caller's value.
        order: The order of the requested page.
        types: The type of each value of the position: `float` or `int` for a number below 2**63, or `str`.

    Raises:
        InvalidInputError: The value is not a cursor of a page in this order.
    """
    made_for, *place = _read(cursor)
    if made_for != order or len(place) != len(types) or not all(map(_fits, place, types)):
        raise not_a_cursor(cursor, order)
    return tuple(int(value) if kind is int else value for value, kind in zip(place, types, strict=True))


def not_a_cursor(cursor: object, order: Order) -> InvalidInputError:
    """The error for a value that is not a cursor of a page in this order."""
    return InvalidInputError(
        f"cursor {cursor!r:.80} is not from a page in the order {order!r}; pass the `cursor` of the page before"
    )


def _read(cursor: object) -> list[Any]:
    if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR_CHARS:
        return [None]
    try:
        read: Any = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError, RecursionError):
        return [None]
    return [*read] if isinstance(read, list) and read else [None]


def _fits(value: object, kind: type) -> bool:
    if kind is str:
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool) and -_HUGE < value < _HUGE
