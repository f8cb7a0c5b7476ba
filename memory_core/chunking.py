"""Where a long text is cut so that every part of it gets a vector of its own."""

from __future__ import annotations

import re
from typing import Final

CHUNK_CHARS: Final = 900
"""About 200 tokens of English, which leaves the default model (256 tokens) room for the author and the turn before."""

_SENTENCE_END: Final = re.compile(r"[.!?…。！？]['\")\]]*\s+|\n+")  # noqa: RUF001  (full-width marks end sentences too)
_SPACE: Final = re.compile(r"\s+")


def split(text: str, size: int = CHUNK_CHARS) -> list[tuple[int, int]]:
    """The pieces of `text` as (start, stop) offsets that cover all of it, each at most `size` characters.

    A piece ends after a sentence if one ends in its second half, else at a space, else where it is full. A text that
    fits is one piece; an empty one has none.
    """
    pieces: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > size:
        stop = _last_end(_SENTENCE_END, text, start + size // 2, start + size)
        stop = stop or _last_end(_SPACE, text, start + size // 2, start + size) or start + size
        pieces.append((start, stop))
        start = stop
    if start < len(text):
        pieces.append((start, len(text)))
    return pieces


def _last_end(pattern: re.Pattern[str], text: str, start: int, stop: int) -> int | None:
    return max((match.end() for match in pattern.finditer(text, start, stop)), default=None)
