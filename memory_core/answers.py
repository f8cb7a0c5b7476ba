"""A fact that was extracted from a turn and that turn are one answer of a search: the turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from memory_core.limits import MAX_LIMIT
from memory_core.models import Hit, MemoryRecord, Passage
from memory_core.protocols import SearchRequest
from memory_core.where.value import Where

EXTRACTION: Final = "extraction"
"""Begins the source key of an extracted fact."""


async def answers(
    request: SearchRequest,
    search: Callable[[SearchRequest], Awaitable[Sequence[Hit]]],
    turns: Callable[[Where, int], Awaitable[Sequence[MemoryRecord]]],
) -> list[Hit]:
    """The hits of a request, with the turn instead of a fact that was extracted from it, at the better place of the
    two; the fact itself if its turn does not satisfy the conditions.

    Args:
        search: The hits of a request, best first.
        turns: The records that satisfy conditions, at most so many.
    """
    wider = request
    while True:
        hits = await search(wider)
        sources = {hit.record.id: source for hit in hits if (source := _source(hit.record)) is not None}
        if not sources:
            return list(hits[: request.limit])
        ids = set(sources.values()) if request.where.ids is None else {*sources.values()} & set(request.where.ids)
        found = await turns(replace(request.where, ids=tuple(ids)), len(ids)) if ids else ()
        once = _once(hits, sources, {turn.id: turn for turn in found})
        if len(once) >= request.limit or len(hits) < wider.limit or wider.limit == MAX_LIMIT:
            return once[: request.limit]
        wider = replace(wider, limit=min(2 * wider.limit, MAX_LIMIT))


def _source(record: MemoryRecord) -> str | None:
    """The id of the turn that a fact was extracted from."""
    if not (record.source_key or "").startswith(f"{EXTRACTION}:"):
        return None
    return next((link.id for link in record.links if link.relation == "derived_from"), None)


def _once(hits: Sequence[Hit], sources: dict[str, str], turns: dict[str, MemoryRecord]) -> list[Hit]:
    passages = {hit.record.id: hit.passage for hit in hits}
    once: dict[str, Hit] = {}
    for hit in hits:
        turn = turns.get(sources.get(hit.record.id, ""))
        if turn is not None:
            passage = _quoted(hit.record.text, turn.text) or passages.get(turn.id)
            hit = replace(hit, record=turn, passage=passage)  # noqa: PLW2901  (the same place, another record)
        once.setdefault(hit.record.id, hit)
    return list(once.values())


def _quoted(fact: str, text: str) -> Passage | None:
    """Where a text says a fact in the same words."""
    start = text.casefold().find(fact.casefold())
    part = text[start : start + len(fact)]
    is_same = start >= 0 and part.casefold() == fact.casefold()
    return Passage(start, start + len(fact), part) if is_same else None
