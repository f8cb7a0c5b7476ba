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
    turns: Callable[[Where], Awaitable[Sequence[MemoryRecord]]],
) -> list[Hit]:
    """The hits of a request, with the turn instead of a fact that was extracted from it, at the better place of the
    two; the fact itself if its turn does not satisfy the conditions.

    Args:
        search: The hits of a request, best first.
        turns: The records that satisfy conditions.
    """
    wider = request
    while True:
        hits = await search(wider)
        sources = {source for hit in hits if (source := _source(hit.record)) is not None}
        if not sources:
            return list(hits[: request.limit])
        ids = sources if request.where.ids is None else sources & set(request.where.ids)
        once = _once(hits, await turns(replace(request.where, ids=tuple(ids))))
        if len(once) >= request.limit or len(hits) < wider.limit or wider.limit == MAX_LIMIT:
            return once[: request.limit]
        wider = replace(wider, limit=min(2 * wider.limit, MAX_LIMIT))


def _source(record: MemoryRecord) -> str | None:
    """The id of the turn that a fact was extracted from."""
    if not (record.source_key or "").startswith(f"{EXTRACTION}:"):
        return None
    return next((link.id for link in record.links if link.relation == "derived_from"), None)


def _once(hits: Sequence[Hit], turns: Sequence[MemoryRecord]) -> list[Hit]:
    by_id = {_identity(turn, turn.id): turn for turn in turns}
    passages = {_identity(hit.record, hit.record.id): hit.passage for hit in hits}
    once: dict[object, Hit] = {}
    for hit in hits:
        key = _identity(hit.record, _source(hit.record) or hit.record.id)
        turn = by_id.get(key)
        if turn is None or turn.id == hit.record.id:
            once.setdefault(_identity(hit.record, hit.record.id), hit)
        else:
            passage = _quoted(hit.record.text, turn.text) or passages.get(key)
            once.setdefault(key, replace(hit, record=turn, passage=passage))
    return list(once.values())


def _identity(record: MemoryRecord, id: str) -> tuple[str, str, str]:  # noqa: A002  (the record's own word)
    """Several owners may have the same id."""
    return record.app, record.user, id


def _quoted(fact: str, text: str) -> Passage | None:
    """Where a text says a fact in the same words."""
    start = text.casefold().find(fact.casefold())
    part = text[start : start + len(fact)]
    is_same = start >= 0 and part.casefold() == fact.casefold()
    return Passage(start, start + len(fact), part) if is_same else None
