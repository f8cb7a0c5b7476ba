"""The text of a query: whether it asks for anything, and cut to the size that a search accepts."""

from __future__ import annotations

import unicodedata

from memory_core.values.limits import MAX_QUERY_CHARS


def asks_for_something(text: str) -> bool:
    """True if a text has more than spaces, punctuation and control characters: a letter, a digit or a symbol."""
    return any(unicodedata.category(character)[0] not in "ZPC" for character in text)


def cut_query(text: str, most: int = MAX_QUERY_CHARS) -> str:
    """Cut the text of a model or a user to the size of a query: its beginning, and its end, where questions usually
    are."""
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 1]}\n{text[-half:]}"
