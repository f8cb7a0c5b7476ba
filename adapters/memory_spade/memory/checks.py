"""Checks of a long-term memory's fields, the same for every backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memory_core import InvalidInputError
from memory_core.adapting import check_unit
from memory_spade.memory.exceptions import MemoryBackendError, MemorySearchError, MemoryStorageError

CATEGORIES: Final = ("fact", "pattern", "preference", "capability")
MAX_LIMIT: Final = 10_000


def checked_category(category: object, error: type[MemoryBackendError]) -> str:
    """Return a category, or raise if it is not one of the four."""
    if not isinstance(category, str) or category not in CATEGORIES:
        raise error(f"category must be one of {', '.join(CATEGORIES)}, not {category!r}")
    return category


def checked_content(content: object) -> str:
    """Return a content, or raise if it is not a string or blank."""
    if not isinstance(content, str) or not content.strip():
        raise InvalidInputError(f"content must be a non-empty string, not {content!r}")
    return content


def check_fields(fields: Mapping[str, object]) -> None:
    """Check the given ones of the fields `content`, `category`, `context` and `confidence`.

    Raises:
        MemoryStorageError: A value is invalid; the message names it.
    """
    try:
        if "content" in fields:
            checked_content(fields["content"])
        if "category" in fields:
            checked_category(fields["category"], MemoryStorageError)
        if not isinstance(fields.get("context"), str | None):
            raise MemoryStorageError(f"context must be a string or None, not {fields['context']!r}")
        if "confidence" in fields:
            check_unit("confidence", fields["confidence"])
    except InvalidInputError as problem:
        raise MemoryStorageError(str(problem)) from problem


def check_search(limit: object, category: object = None) -> None:
    """Check the limit of a search or a list, and its category if it has one."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise MemorySearchError(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {limit!r}")
    if category is not None:
        checked_category(category, MemorySearchError)
