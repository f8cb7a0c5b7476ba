"""The versions of a record: its earlier texts and the current one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from memory_core.models import MemoryRecord, Version

REVISIONS_KEPT: Final = 20
"""The number of earlier texts of a record, the latest ones, that are kept."""


def versions_of(record: MemoryRecord, earlier: Sequence[tuple[int, str, datetime]]) -> list[Version]:
    """The versions of a record, oldest first: its earlier texts (rev, text, until) and the current one."""
    since = record.created_at
    found: list[Version] = []
    for rev, text, until in earlier:
        found.append(Version(record.id, rev, text, since, until))
        since = until
    return [*found, Version(record.id, record.rev, record.text, since, None)]
