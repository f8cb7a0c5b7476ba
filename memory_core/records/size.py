"""The bytes of a record: those that a quota counts, and by which an answer of a server ends."""

from __future__ import annotations

from typing import Final

from memory_core.models import MemoryRecord
from memory_core.records.stored_links import stored_links
from memory_core.values.json_text import encode_json

_PAIR: Final = 2
"""The bytes of `{}` and `[]`."""
_EMPTY: Final = 3 * _PAIR
"""The bytes of a record without content."""


def bytes_of(record: MemoryRecord) -> int:
    """The bytes of the text in UTF-8, and of data, tags and links as JSON."""
    text = record.text
    size = _EMPTY + (len(text) if text.isascii() else len(text.encode()))
    if record.data:
        size += len(encode_json(record.data)) - _PAIR
    if record.tags:
        size += len(encode_json(record.tags)) - _PAIR
    if record.links:
        size += len(encode_json(stored_links(record.links))) - _PAIR
    return size
