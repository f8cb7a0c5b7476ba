"""Cursors of pages: where the next page begins, as a text that callers hand back."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Order

MAX_CURSOR_CHARS: Final = 256
"""Longer than any cursor that a page gives."""
_HUGE: Final = 1 << 63
"""Beyond what databases take as a number."""


def encode_cursor(order: Order, *place: float | str) -> str:
    """A cursor for a place in this order."""
    return base64.urlsafe_b64encode(json.dumps([order, *place]).encode()).decode()


def decode_cursor(cursor: object, order: Order, types: tuple[type, ...]) -> tuple[Any, ...]:
    """The place a cursor names.

    Args:
        cursor: Whatever a caller handed over.
        order: The order of the page that is asked for.
        types: What each value of the place is: `float` or `int` for a number below 2**63, or `str`.

    Raises:
        InvalidInputError: It is not a cursor of a page in this order.
    """
    made_for, *place = _read(cursor)
    if made_for != order or len(place) != len(types) or not all(map(_fits, place, types)):
        raise not_a_cursor(cursor, order)
    return tuple(int(value) if kind is int else value for value, kind in zip(place, types, strict=True))


def not_a_cursor(cursor: object, order: Order) -> InvalidInputError:
    """The error for what is not a cursor of a page in this order."""
    return InvalidInputError(f"cursor {cursor!r:.80} is not one that a page in the order {order!r} gave")


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
