"""Checks of what embedders are given."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.errors import InvalidInputError


def check_documents(texts: Sequence[str]) -> None:
    """Refuse one text where a list of texts is expected: it would be embedded character by character."""
    if isinstance(texts, str):
        raise InvalidInputError(f"embed_documents takes a list of texts, not one text: [{texts[:40]!r}]")


def known_dimensions(model: str, given: int | None, table: dict[str, int]) -> int:
    """The given dimensions, or those in the table; raises `InvalidInputError` without either."""
    dimensions = table.get(model) if given is None else given
    if dimensions is None:
        raise InvalidInputError(f"the dimensions of {model!r} are not known; give them: dimensions=…")
    if dimensions < 1:
        raise InvalidInputError(f"dimensions must be at least 1, not {dimensions}")
    return dimensions
