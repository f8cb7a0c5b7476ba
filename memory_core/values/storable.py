"""Texts of a person, a model or a client, which may be too long or have halves of characters."""

from __future__ import annotations

from memory_core.values.limits import MAX_TEXT_CHARS


def storable(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """The text with `?` for halves of characters, and only its beginning if it has more characters than a record's."""
    return text[:most].encode(errors="replace").decode()
