"""The reason why a memory is, or is not, in the block for a question."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from memory_core.handle import BoundMemory
from memory_core.recall.asked import Asked
from memory_core.recall.recalling import recall_for
from memory_core.recall.values import PUSHED, PUSHED_CHARS, Considered, Recalled
from memory_core.values.limits import MAX_LIMIT, PAGE_BYTES
from memory_core.where.where import ANY_STATE

NOTHING_IN_COMMON: Final = "it has no word and no meaning in common with the question"
"""The reason why a memory that no search finds is not in a block."""


async def explained(
    owner: BoundMemory,
    query: str,
    id: str,  # noqa: A002  (the record's own word)
    *,
    max_chars: int = PUSHED_CHARS,
) -> Considered | None:
    """The decision of a recall about one memory; `None` if it has nothing in common with the question."""
    considered = (await looked_at(owner, query, max_chars=max_chars)).considered
    found = next((each for each in considered if each.hit.record.id == id), None)
    return found or await _beyond(owner, query, id)


async def looked_at(owner: BoundMemory, query: str, *, max_chars: int = PUSHED_CHARS) -> Recalled:
    """The recall of an agent, explained; a person who looks at it does not count as a reader of the memories."""
    return await recall_for(owner, Asked(query, counts_reads=False), replace(PUSHED, max_chars=max_chars), explain=True)


async def _beyond(owner: BoundMemory, query: str, id: str) -> Considered | None:  # noqa: A002
    """The place of a memory that ranks too low to be considered."""
    hits = await owner.search(query, limit=MAX_LIMIT, where=ANY_STATE, floor=False, explain=True, most_bytes=PAGE_BYTES)
    ranked = [*(hit.record.id for hit in hits), *hits.rest]
    if id not in ranked:
        return None
    rank = ranked.index(id)
    if rank >= len(hits):
        hits = await owner.search(query, where=replace(ANY_STATE, ids=[id]), floor=False, explain=True)
    found = next((hit for hit in hits if hit.record.id == id), None)
    if found is None:  # it was deleted meanwhile
        return None
    is_hidden = found.record.left or found.record.state != "active"
    return Considered(found, rank + 1, "filter" if is_hidden else "floor")
