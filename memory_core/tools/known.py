"""Whether a statement is known already, before it is stored with others."""

from __future__ import annotations

from memory_core.handle import BoundMemory
from memory_core.models import Draft, MemoryRecord
from memory_core.records.draft_to_record import new_record
from memory_core.retrieval.equal_statements import equal_to


async def known_already(handle: BoundMemory, draft: Draft) -> MemoryRecord | None:
    """The record that represents a draft, as for `add(…, on_duplicate="refuse")`; `None` if the draft is new."""
    equal = await equal_to(handle, new_record(draft, handle.scope, handle.memory.clock()))
    return equal[0] if equal else None
