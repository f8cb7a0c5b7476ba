"""Run a recall: search for a question, select the hits and format them as a block for a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from memory_core.models import STATES, Hit, MemoryRecord, Mode, Relation, Role
from memory_core.protocols import Home, Searching
from memory_core.recall.block import longest_text
from memory_core.recall.quoting import cut_query
from memory_core.recall.reads import count_reads, read_in_block
from memory_core.recall.values import DEFAULT_CHARS, Considered, Reason, Recalled, RecallOptions, shows_nothing_yet
from memory_core.values.checks import check_text
from memory_core.values.times import until_after, utc_now
from memory_core.where.value import EVERYTHING, Where

if TYPE_CHECKING:
    from memory_core.recall.selection import Selection

MAX_QUERY_CHARS: Final = 2_000
"""Maximum number of characters of a question that are searched for, from its beginning and its end. Embedders read
less."""
_LINE_CHARS: Final = 120
"""Approximate length of a line; the budget divided by it is the number of hits fetched at first."""
_FEWEST_HITS, _MOST_HITS = 50, 1_000
MAX_LIMIT: Final = 10_000
"""Maximum number of records that one search returns."""
_PER_LINE: Final = 4
"""Number of hits fetched for each memory of `RecallOptions`' limit."""
_MORE: Final = 4
"""Factor by which more hits are fetched if the present ones do not fill the block."""
_AROUND: Final = 10
"""Turns of a session that are read to find a turn's neighbor, since several may have the same time."""
_MOST_FOLLOWED: Final = 24
"""Neighbors and links are followed from at most this many of the best candidates."""


@runtime_checkable
class _WithClock(Protocol):
    """A handle of a memory, which has its own clock."""

    @property
    def memory(self) -> Home: ...


@runtime_checkable
class _WithSpaces(Protocol):
    """A handle that reads several owners."""

    def label_of(self, record: MemoryRecord) -> str | None: ...


async def recall(  # noqa: PLR0913  (one optional keyword per option)
    handle: Searching,
    /,
    query: str,
    *,
    max_chars: int | None = DEFAULT_CHARS,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
    limit: int | None = None,
    where: Where = EVERYTHING,
    kinds: Sequence[str] = (),
    roles: Sequence[Role] = (),
    mode: Mode = "hybrid",
    floor: bool = True,
    min_score: float = 0.0,
    diversity: float = 0.0,
    latest_first: bool = True,
    neighbors: bool = True,
    links: Sequence[Relation] = (),
    format: Callable[[MemoryRecord, str], str] | None = None,  # noqa: A002  (it formats)
    without: Callable[[MemoryRecord], bool] = shows_nothing_yet,
    explain: bool = False,
) -> Recalled:
    """Recall memories about a question as a block for a prompt, escaped and within a budget.

    Args:
        query: A question, or the message to be answered; a blank one recalls nothing.
        explain: Fill `Recalled.considered`: why each memory is in the block or not.

    The other arguments are the fields of `RecallOptions`, which raises `InvalidInputError` for invalid values.
    """
    options = RecallOptions(
        max_chars=max_chars,
        max_tokens=max_tokens,
        count_tokens=count_tokens,
        limit=limit,
        where=where,
        kinds=kinds,
        roles=roles,
        mode=mode,
        floor=floor,
        min_score=min_score,
        diversity=diversity,
        latest_first=latest_first,
        neighbors=neighbors,
        links=links,
        format=format,
        without=without,
    )
    return await recall_with(handle, query, options, explain=explain)


async def recall_with(
    handle: Searching, query: str, options: RecallOptions, *, explain: bool = False, counts_reads: bool = True
) -> Recalled:
    """`recall` with its options as one value, for adapters and tools."""
    from memory_core.recall.packing import pack  # noqa: PLC0415  (analysis takes 20 ms)

    now = handle.memory.clock() if isinstance(handle, _WithClock) else utc_now()
    if isinstance(handle, _WithSpaces):
        options = replace(options, label=handle.label_of)
    wanted = cut_query(check_text("query", query), MAX_QUERY_CHARS)
    where = options.conditions()
    hits, selection = await _selected(handle, wanted, options, where, now, explain=explain)
    await _raise_answered(handle, selection, wanted, where)
    await _follow_links(handle, selection, options, where)
    if options.neighbors:
        await _add_neighbors(handle, selection, wanted, where)
    packed = pack(selection.kept, options)
    considered = (
        await _considered(handle, wanted, options, hits, selection.left_out | packed.outcomes) if explain else ()
    )
    shown = tuple(each.hit for each in packed.shown)
    if counts_reads:
        await count_reads(handle, read_in_block(hits, shown))
    return Recalled(packed.text, shown, packed.records, considered)


async def _selected(
    handle: Searching, query: str, options: RecallOptions, where: Where, now: datetime, *, explain: bool
) -> tuple[list[Hit], Selection]:
    """Search until the selected hits fill the block, or no more are found."""
    from memory_core.recall.selection import select  # noqa: PLC0415

    room = min(options.max_chars or _MOST_HITS * _LINE_CHARS, (options.max_tokens or _MOST_HITS * _LINE_CHARS) * 4)
    wanted = _MOST_HITS if options.limit is None else options.limit
    enough = _MOST_HITS if options.limit is None else max(_MOST_HITS, _PER_LINE * wanted)
    limit = min(max(_FEWEST_HITS, min(room // _LINE_CHARS, _PER_LINE * wanted)), enough, MAX_LIMIT)
    while True:
        hits = await handle.search(
            query, limit=limit, where=where, mode=options.mode, floor=options.floor, explain=explain, apart=True
        )
        longest = longest_text(options.max_chars, options.max_tokens)
        selection = await asyncio.to_thread(select, query, hits, options, longest=longest, now=now)  # some milliseconds
        statements = [candidate for candidate in selection.kept if not candidate.is_request]
        is_full = len(statements) >= wanted or sum(len(candidate.text) for candidate in statements) >= room
        most = min(enough + selection.excluded, MAX_LIMIT)
        if is_full or len(hits) < limit or limit >= most:
            return hits, selection
        limit = min(_MORE * limit, most)


async def _follow_links(handle: Searching, selection: Selection, options: RecallOptions, where: Where) -> None:
    """Insert the records that the best candidates link to after them."""
    if not options.links:
        return
    wanted = {
        link.id: candidate
        for candidate in reversed(selection.kept[:_MOST_FOLLOWED])
        for link in candidate.record.links
        if link.relation in options.links
    }
    if not wanted:
        return
    ids = tuple(wanted) if where.ids is None else tuple(set(wanted) & set(where.ids))
    page = await handle.list(where=replace(where, ids=ids), limit=_MOST_HITS)
    for record in page.records:
        if not options.without(record):
            selection.add_after(wanted[record.id], record, longest_text(options.max_chars, options.max_tokens))


async def _raise_answered(handle: Searching, selection: Selection, query: str, where: Where) -> None:
    """Raise the answers to earlier questions to the rank of these questions, since a repeated question has the same
    answer."""
    from memory_core.recall.statements import terms_of  # noqa: PLC0415

    wanted = terms_of(query)
    found = await asyncio.gather(*(_neighbor(handle, c.record, where, is_after=True) for c in selection.asked))
    for question, answer in zip(selection.asked, found, strict=True):
        if answer is not None:
            selection.raise_answered(question, answer, wanted)


async def _add_neighbors(handle: Searching, selection: Selection, query: str, where: Where) -> None:
    """Add the question before short replies, and the answer after questions."""
    from memory_core.recall.selection import needs_neighbor, with_neighbors  # noqa: PLC0415

    asking = [candidate for candidate in selection.kept if needs_neighbor(candidate)][:_MOST_FOLLOWED]
    found = await asyncio.gather(*(_neighbor(handle, c.record, where, is_after=c.is_request) for c in asking))
    by_id = {c.record.id: record for c, record in zip(asking, found, strict=True) if record is not None}
    selection.kept = with_neighbors(selection.kept, query, by_id)


async def _neighbor(handle: Searching, record: MemoryRecord, where: Where, *, is_after: bool) -> MemoryRecord | None:
    """The turn after or before a record in its session, if it satisfies the conditions."""
    at = record.occurred_at
    if is_after:
        around = replace(where, session=record.session, since=at)
    else:
        around = replace(where, session=record.session, until=until_after(at))
    page = await handle.list(where=around, order="oldest" if is_after else "newest", limit=_AROUND)
    places = [n for n, each in enumerate(page.records) if each.id == record.id]
    rest = page.records[places[0] + 1 :] if places else ()
    return next((each for each in rest if each.kind == record.kind and each.text.strip()), None)


async def _considered(
    handle: Searching,
    query: str,
    options: RecallOptions,
    hits: Sequence[Hit],
    outcomes: Mapping[str, tuple[Reason, str | None]],
) -> tuple[Considered, ...]:
    """The outcome of every hit, and the hits found only without the floor or without the conditions."""
    considered = [Considered(hit, rank, *outcomes[hit.record.id]) for rank, hit in enumerate(hits, 1)]
    limit = max(len(hits), _FEWEST_HITS)
    wider: tuple[tuple[Reason, Where], ...] = (("floor", options.conditions()), ("filter", Where(states=STATES)))
    for reason, where in wider:
        known = {each.hit.record.id for each in considered}
        more = await handle.search(
            query, limit=limit, where=where, mode=options.mode, floor=False, explain=True, apart=True
        )
        for hit in more:
            if hit.record.id not in known:
                superseded = reason == "filter" and hit.record.state == "archived"
                found = ("superseded" if superseded else reason), None
                considered.append(Considered(hit, len(considered) + 1, *outcomes.get(hit.record.id, found)))
    return tuple(considered)
