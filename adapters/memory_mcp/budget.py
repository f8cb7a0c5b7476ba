"""The greatest length of an answer, in both of its forms.

Invariant: neither form of an answer is longer than `MOST_CHARS` characters and `MOST_TOKENS` tokens. A tokenizer makes
at most one token of a byte, so bytes are counted. What is too long loses its end, and the note says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar, cast

from memory_mcp.values import Answer

A = TypeVar("A", bound=Answer)

MOST_CHARS: Final = 20_000
MOST_TOKENS: Final = 25_000
"""The length that a widespread client accepts by default; it refuses a longer answer as a whole."""
_LEAST_TEXT_CHARS: Final = 250
"""Contents are not cut below this while there is an item that can be left out."""
_NAME_CHARS: Final = 100
"""Other texts of an answer, if it is too long even with one item."""
_MOST_NAMES: Final = 10
_ITEMS: Final = ("rest", "results", "memories", "versions", "ids", "shown", "byType", "collections", "copies", "tags")
"""Fields that may lose their last items."""
_COUNTED: Final = ("results", "memories")
"""Fields whose number of items is the answer's `count`."""
_CUT: Final = "…"


def fits(answer: Answer, text: str) -> bool:
    """True if both forms of an answer are short enough."""
    return _is_short(_json(answer.model_dump(mode="json", exclude_none=True))) and _is_short(text)


def fitted(answer: A, text_of: Callable[[A], str], *, way_out: Sequence[str] = ()) -> A:
    """The answer, or as much of it as is allowed.

    Args:
        answer: With everything there is to say.
        text_of: Its form for clients that show their model the text.
        way_out: The ways to read what an answer leaves out, for its note, which says none twice.
    """
    if fits(answer, text_of(answer)):
        return answer
    whole = answer.model_dump(mode="json", exclude_none=True)

    def made(value: dict[str, Any]) -> A:
        note = " ".join([answer.note, _left_out(whole, value), *(way for way in way_out if way not in answer.note)])
        return type(answer).model_validate({**value, "note": note})

    def is_short(value: dict[str, Any]) -> bool:
        one = made(value)
        return fits(one, text_of(one))

    value = _with_longest_contents(whole, is_short)
    while not is_short(value) and (shorter := _with_fewer_items(value)) != value:
        value = shorter
    return made(value if is_short(value) else _with_short_names(value))


def most_that_fits(most: int, fits_with: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, at least 0, found by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits_with(middle) else (low, middle - 1)
    return low


def _with_longest_contents(value: dict[str, Any], is_short: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    longest = most_that_fits(MOST_CHARS, lambda most: is_short(_with_contents(value, most)))
    made: dict[str, Any] = _with_contents(value, max(longest, _LEAST_TEXT_CHARS))
    return made


def _with_contents(value: Any, most: int) -> Any:
    """The value with no content longer than so many characters."""
    if isinstance(value, list):
        return [_with_contents(one, most) for one in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    made = {name: _with_contents(one, most) for name, one in cast("dict[str, Any]", value).items()}
    content = made.get("content")
    if isinstance(content, str) and len(content) > most:
        made |= {"content": content[: max(most - 1, 0)] + _CUT, "truncated": True}
    return made


def _with_fewer_items(value: dict[str, Any]) -> dict[str, Any]:
    """The value without the last tenth of its longest list."""
    name = max((each for each in _ITEMS if each in value), key=lambda each: len(value[each]), default=None)
    if name is None or len(value[name]) <= 1:
        return value
    keep = max(1, len(value[name]) * 9 // 10)
    made = {**value, name: _first(value[name], keep)}
    return {**made, "count": keep} if name in _COUNTED else made


def _first(items: Any, keep: int) -> Any:
    """The first items of a list, or of an object."""
    return dict(islice(cast("dict[str, Any]", items).items(), keep)) if isinstance(items, dict) else items[:keep]


def _with_short_names(value: Any) -> Any:
    """The value with all of its texts and lists short, for names that no agent gives."""
    if isinstance(value, dict):
        return {name: _with_short_names(one) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_with_short_names(one) for one in cast("list[object]", value)[:_MOST_NAMES]]
    return value[: _NAME_CHARS - 1] + _CUT if isinstance(value, str) and len(value) > _NAME_CHARS else value


def _left_out(whole: dict[str, Any], value: dict[str, Any]) -> str:
    missing = sum(len(whole[name]) - len(value[name]) for name in _ITEMS if name in whole)
    return f"{missing} more are left out, for the answer would be too long." if missing else "Long texts are cut."


def _is_short(text: str) -> bool:
    return len(text) <= MOST_CHARS and len(text.encode(errors="replace")) <= MOST_TOKENS


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
