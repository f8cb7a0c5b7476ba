"""What it means to add a source key again."""

from __future__ import annotations

from memory_core.models import Draft, MemoryRecord
from memory_core.values.json_text import is_same_json


def is_same(record: MemoryRecord, later: Draft | MemoryRecord) -> bool:
    """Whether a later version under the same source key leaves the record as it is; without a role, the role stays."""
    said = (later.text, later.role or record.role, later.author, tuple(later.tags))
    return said == (record.text, record.role, record.author, record.tags) and is_same_json(later.data, record.data)
