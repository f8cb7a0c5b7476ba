"""The list of the first page: what a search finds, or what there is, with the kinds to choose from."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_core.app.serve.conditions import Pairs, query_of
from memory_core.app.serve.shapes import Facet, Line, hit_lines, kinds_of, line_of
from memory_core.app.serve.visits import Visit
from memory_core.models import Hit
from memory_core.short_page import short_page
from memory_core.values.limits import PAGE_BYTES
from memory_core.where.where import ANY_STATE, Where

PAGE: Final = 20
"""Memories on a page."""
MOST_FOUND: Final = 1_000
"""A search counts and shows what it has found up to this number."""
MOST_BEYOND: Final = 5
"""Memories behind the line where relevance ends."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of memories."""

    lines: Sequence[Line]
    count: int
    """The number of memories on all pages together."""
    is_all: bool
    """False if there may be more than are counted."""
    kinds: Sequence[Facet]
    more: str | None = None
    """The query of what comes next."""
    beyond: Sequence[Line] = ()
    """After the last relevant memory, the best of those that are not relevant."""
    unread: int = 0
    """The number of memories that are found and not read, because all together are too long."""


async def searched(found: Visit, query: str, where: Where, pairs: Pairs, wanted: int) -> Listed:
    """The memories that a search finds.

    Args:
        pairs: The question and the conditions as they stand in the address.
        wanted: The number of memories to show.
    """
    wanted = min(max(wanted, PAGE), MOST_FOUND)
    hits = await found.reach.search(query, limit=MOST_FOUND, where=where, explain=True, most_bytes=PAGE_BYTES)
    shown, unread = len(hits[:wanted]), len(hits.rest)
    is_end = shown == len(hits)
    beyond = await _beyond(found, query, where, hits) if is_end and not unread else []
    lines = hit_lines([*hits[:wanted], *beyond])
    return Listed(
        lines[:shown],
        count=len(hits) + unread,
        is_all=len(hits) + unread < MOST_FOUND,
        unread=unread if is_end else 0,
        kinds=kinds_of(
            await _found_kinds(found, query, where, hits, hits.rest), where.kinds or (), _without_kinds(pairs)
        ),
        more=None if is_end else query_of([*pairs, ("shown", str(wanted + PAGE))]) + f"#place-{wanted + 1}",
        beyond=lines[shown:],
    )


async def _beyond(found: Visit, query: str, where: Where, hits: Sequence[Hit]) -> list[Hit]:
    relevant = {hit.record.id for hit in hits}
    every = await found.reach.search(
        query,
        limit=len(relevant) + MOST_BEYOND,
        where=where,
        explain=True,
        floor=False,
        most_bytes=2 * PAGE_BYTES,  # the relevant ones again, and as much of others
    )
    return [hit for hit in every if hit.record.id not in relevant][:MOST_BEYOND]


async def _found_kinds(
    found: Visit, query: str, where: Where, hits: Sequence[Hit], rest: Sequence[str]
) -> Counter[str]:
    """The number of memories of each kind that the search finds under the other conditions."""
    if where.kinds is not None:
        every = await found.reach.search(
            query, limit=MOST_FOUND, where=replace(where, kinds=None), most_bytes=PAGE_BYTES
        )
        hits, rest = every, every.rest
    kinds = Counter(hit.record.kind for hit in hits)
    return kinds + await _counted(found, replace(ANY_STATE, ids=rest)) if rest else kinds


async def _counted(found: Visit, where: Where) -> Counter[str]:
    """The number of memories of each kind that there are."""
    kinds = Counter[str]()
    together = found.served.together(found.owner)
    for counted in await asyncio.gather(*(owner.stats(where) for owner in together)):
        kinds.update(counted.by_kind)
    return kinds


async def browsed(found: Visit, where: Where, pairs: Pairs, cursor: str) -> Listed:
    """The memories that there are, newest first."""
    page = await short_page(
        found.reach, where=where, order="newest", limit=PAGE, cursor=cursor or None, most_bytes=PAGE_BYTES
    )
    kinds = await _counted(found, replace(where, kinds=None))
    chosen = where.kinds or ()
    return Listed(
        [line_of(record) for record in page.records],
        count=sum(count for kind, count in kinds.items() if where.kinds is None or kind in chosen),
        is_all=True,
        kinds=kinds_of(kinds, chosen, _without_kinds(pairs)),
        more=None if page.cursor is None else query_of([*pairs, ("cursor", page.cursor)]),
    )


def _without_kinds(pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if pair[0] != "kinds"]
