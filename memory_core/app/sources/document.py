"""Documents, plain text or Markdown, in parts that keep their place."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from memory_core.models import Draft, Json
from memory_core.transfer.documents import KIND, parts_of
from memory_core.transfer.foreign_files import bytes_of, file_at
from memory_core.transfer.formats import Found, Refused


async def document(source: str) -> AsyncIterator[Found | Refused]:
    """A text or Markdown file, in parts with their place."""
    path = file_at(source)
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    empty = True
    for start, part in parts_of(path.name, bytes_of(path)):
        empty = False
        digest = hashlib.sha256(f"{path.name}\0{start}\0{part}".encode()).hexdigest()
        data: dict[str, Json] = {"file": path.name, "start": start, "stop": start + len(part)}
        yield Found(
            f"{path.name}, from character {start}",
            Draft(part, kind=KIND, data=data, occurred_at=changed, source_key=f"document:{digest}"),
        )
    if empty:
        yield Refused(path.name, "it has no text")
