"""The key of a record in a recall, which may read the memories of several owners."""

from __future__ import annotations

from memory_core.models import MemoryRecord

Key = tuple[str, str, str]
"""The app, the user and the id of a record: two owners may have records with the same id."""


def key_of(record: MemoryRecord) -> Key:
    """The key of a record."""
    return record.app, record.user, record.id
