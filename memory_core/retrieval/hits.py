"""The hits that a search returns; notebooks show them as a table.

A fact that was extracted from a turn and that turn are one answer: the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from memory_core.concurrency.loop import on_core
from memory_core.models import Hit, MemoryRecord, Passage
from memory_core.open_store import HitOrder
from memory_core.requests import SearchRequest
from memory_core.short_page import count_within
from memory_core.values.html_tables import html_table
from memory_core.values.limits import MAX_LIMIT
from memory_core.where.where import Where

EXTRACTION: Final = "extraction"
"""The kind of an extracted fact."""
FACT_KEY: Final = f"{EXTRACTION}:"
"""The source key of an extracted fact begins with this."""


class Hits(list[Hit]):
    """The hits of a search, best first."""

    __slots__ = ("rest",)

    def __init__(self, hits: Iterable[Hit] = (), rest: Iterable[str] = ()) -> None:
        super().__init__(hits)
        self.rest: tuple[str, ...] = tuple(rest)
        """The ids of further hits, best first, that `most_bytes` leaves out; a search with `Where(ids=...)` finds
        them."""

    def _repr_html_(self) -> str:
        """A row for each hit; with `explain=True` the last column has the parts of the score, the largest first."""
        explained = any(hit.components for hit in self)
        head = ["score", "text", "kind", "author", "occurred at", *(["parts"] if explained else [])]
        return html_table(head, (_row(hit, explained=explained) for hit in self))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:  # pydantic's types
        from pydantic_core import core_schema as core  # noqa: PLC0415  (only pydantic calls this, so it is installed)

        return core.no_info_after_validator_function(cls, handler.generate_schema(list[Hit]))


def within(hits: Sequence[Hit], request: SearchRequest) -> Hits:
    """The hits up to the limit of a request, and of these no more than its bytes allow, but always the first one."""
    hits, rest = hits[: request.limit], [*rest_of(hits)]
    if request.most_bytes is not None:
        count = count_within((hit.record for hit in hits), request.most_bytes)
        hits, rest = hits[:count], [*(hit.record.id for hit in hits[count:]), *rest]
    return Hits(hits, rest[: request.limit - len(hits)])


def rest_of(hits: Sequence[Hit]) -> tuple[str, ...]:
    """The ids of further hits that were not read."""
    return hits.rest if isinstance(hits, Hits) else ()


def share_of_words(hit: Hit) -> float:
    """The share of the query's words that a hit of a search with `explain=True` covers, from 0 to 1; see `bm25.py`."""
    from memory_core.retrieval.ranking import WORDS  # noqa: PLC0415  (numpy, which the search has loaded)

    part = (hit.components or {}).get("bm25")
    return 0.0 if part is None else min(max(part.weighted / WORDS, 0.0), 1.0)


async def best_hits(
    request: SearchRequest,
    search: Callable[[SearchRequest], Awaitable[list[Hit]]],
    turns: Callable[[Where], Awaitable[Sequence[MemoryRecord]]],
    order: HitOrder | None,
    *,
    apart: bool,
) -> Hits:
    """The hits of a request, in the order of the memory's reranker, if it has one.

    Args:
        search: Returns the hits of a request, best first.
        turns: The records that satisfy conditions.
        order: The reranker; it judges no substring and no vector.
        apart: True to keep facts and their turns apart; see `turns_for_facts`.
    """
    is_judged = order is not None and request.mode != "substring" and request.vector is None
    wanted = order.widened(request) if order is not None and is_judged else request
    hits: Sequence[Hit] = await search(wanted)
    if not apart and any((hit.record.source_key or "").startswith(FACT_KEY) for hit in hits):
        hits = await turns_for_facts(wanted, hits, search, turns)  # few memories have extracted facts
    if order is not None and is_judged:
        hits = Hits(await on_core(order.reranked, request.text, hits), rest_of(hits))
    return within(hits, request)


async def turns_for_facts(
    request: SearchRequest,
    hits: Sequence[Hit],
    search: Callable[[SearchRequest], Awaitable[Sequence[Hit]]],
    turns: Callable[[Where], Awaitable[Sequence[MemoryRecord]]],
) -> Hits:
    """The hits of a request, with the turn instead of a fact that was extracted from it, at the better place of the
    two; the fact itself if its turn does not satisfy the conditions.

    Args:
        hits: The hits of this request, best first.
        search: Returns the hits of a wider request, for when too few are left.
        turns: The records that satisfy conditions.
    """
    wider: SearchRequest = request
    while True:
        sources = {source for hit in hits if (source := _source(hit.record)) is not None}
        if not sources:
            return Hits(hits[: request.limit], rest_of(hits))
        ids = sources if request.where.ids is None else sources & set(request.where.ids)
        once = _once(hits, await turns(replace(request.where, ids=tuple(ids))))
        if len(once) >= request.limit or len(hits) < wider.limit or wider.limit == MAX_LIMIT:
            return Hits(once[: request.limit], rest_of(hits))
        wider = replace(wider, limit=min(2 * wider.limit, MAX_LIMIT))
        hits = await search(wider)


def _source(record: MemoryRecord) -> str | None:
    """The id of the turn that a fact was extracted from."""
    if not (record.source_key or "").startswith(FACT_KEY):
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
    """The passage in which a text says a fact in the same words."""
    start = text.casefold().find(fact.casefold())
    part = text[start : start + len(fact)]
    is_same = start >= 0 and part.casefold() == fact.casefold()
    return Passage(start, start + len(fact), part) if is_same else None


def _row(hit: Hit, *, explained: bool) -> list[object]:
    record = hit.record
    text = record.text if hit.passage is None else hit.passage.text
    row: list[object] = [hit.score, text, record.kind, record.author, record.occurred_at]
    if explained:
        parts = sorted((hit.components or {}).items(), key=lambda part: -abs(part[1].weighted))
        row.append(", ".join(f"{name} {part.weighted:.2f}" for name, part in parts if part.weighted))
    return row
