"""Run a recall: search for a question, choose lines from the hits and format them as a block for a prompt.

The path of a hit: `asking` finds it, `pushing` and `choosing` leave it out if the prompt or another line says all of
it, `authors` lets it wait if its author has many lines and `trust` does not know them, `neighbors` completes it, and
`packing` gives it a line if there is room. Every step but the first keeps what it was given, or names a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard

from memory_core.agent_memory import Searching
from memory_core.concurrency.loop import off_loop
from memory_core.conversation.messages.message_to_draft import Message, read_messages
from memory_core.models import Hit, MemoryRecord
from memory_core.open_store import OpenStore
from memory_core.recall.asked import Asked
from memory_core.recall.block import longest_text
from memory_core.recall.keys import Key, key_of
from memory_core.recall.reads import count_reads, read_in_block
from memory_core.recall.values import MOST_BYTES, PUSHED, Considered, Reason, Recalled, RecallOptions
from memory_core.values.attributes import has
from memory_core.values.checks import check_text
from memory_core.values.limits import MAX_LIMIT
from memory_core.values.times import utc_now
from memory_core.where.checks import check_where
from memory_core.where.meaning import satisfies
from memory_core.where.where import ANY_STATE, Where

if TYPE_CHECKING:
    from memory_core.recall.asking import Found, InContext
    from memory_core.recall.choosing import Choice, Outcomes
    from memory_core.recall.line import Line

_LINE_CHARS: Final = 80
"""Approximate length of a short line; the budget divided by it is the number of hits fetched."""
_FEWEST_HITS, _MOST_HITS = 30, 1_000
_PER_LINE: Final = 4
"""Number of hits fetched for each memory of `RecallOptions`' limit."""
_LONG: Final = 100_000
"""Characters of the hits that are chosen from within about a millisecond."""
_MORE: Final = 4
"""Factor by which more hits are fetched if too many were left out."""
_ALSO_OF_WORSE: Final = frozenset[Reason](["score", "small talk", "floor"])
"""Reasons that leave out what is found later as well, so that it is not fetched."""
_MOST_FOLLOWED: Final = 24
"""Neighbors and links are followed from at most this many of the best lines."""


class _WithClock(Protocol):
    """A handle of a memory, which has its own clock."""

    @property
    def memory(self) -> OpenStore: ...


class _WithSpaces(Protocol):
    """A handle that may read several owners."""

    @property
    def spaces(self) -> Mapping[str, object]: ...

    def label_of(self, record: MemoryRecord) -> str | None: ...


def _has_clock(handle: object) -> TypeGuard[_WithClock]:
    return has(handle, "memory")


def _has_spaces(handle: object) -> TypeGuard[_WithSpaces]:
    return has(handle, "spaces") and has(handle, "label_of")


async def recall(
    handle: Searching,
    /,
    query: str,
    options: RecallOptions = PUSHED,
    *,
    conversation: Sequence[Message | tuple[str, str] | Mapping[str, object]] = (),
    max_chars: int | None = None,
    limit: int | None = None,
    explain: bool = False,
) -> Recalled:
    """Recall memories about a question as a block for a prompt, escaped and within a budget.

    Args:
        query: A question, or the message to be answered; a blank one recalls nothing.
        options: `PUSHED` for what is put into a prompt, as every adapter does; `PULLED` for what a tool asks for; or
            options of your own.
        conversation: The messages before it, in the forms that `remember` accepts. A question that needs them ("What
            was the code again?") is understood from them; they are never results, because the prompt shows them.
        max_chars: Budget of the block in characters; by default that of the options.
        limit: Maximum number of memories; by default that of the options.
        explain: Fill `Recalled.considered`: why each memory is in the block or not.

    Raises:
        InvalidInputError: A value makes no sense, or an item of the conversation is not a message.
    """
    asked = Asked(query, read_messages(conversation))
    return await recall_for(handle, asked, _varied(options, max_chars, limit), explain=explain)


async def recall_for(handle: Searching, given: Asked, options: RecallOptions, *, explain: bool = False) -> Recalled:
    """As `recall`, by a module that knows something about the prompt."""
    from memory_core.recall.asking import in_context  # noqa: PLC0415  (analysis takes 20 ms)
    from memory_core.recall.choosing import unfit  # noqa: PLC0415
    from memory_core.recall.neighbors import with_neighbors  # noqa: PLC0415
    from memory_core.recall.packing import pack  # noqa: PLC0415

    check_text("query", given.text)
    now, asked = _now(handle), in_context(given)
    where = check_where(options.where)
    found, choice = await _chosen(handle, asked, options, where, now, explain=explain)

    def may_show(record: MemoryRecord) -> bool:
        return satisfies(record, where, now) and unfit(record, asked, options, now) is None

    lines = await _with_links(handle, choice.lines, options, where, may_show)
    if options.neighbors:
        lines = await with_neighbors(handle, lines, where, _MOST_FOLLOWED, may_show)
    packed = pack(lines, options, _label_of(handle))
    considered: tuple[Considered, ...] = ()
    if explain:
        outcomes = choice.outcomes | _with_causes(packed.outcomes, choice.later)
        considered = await _considered(handle, asked.question, options, found.hits, outcomes, choice.later)
    shown = tuple(each.hit for each in packed.shown)
    if given.counts_reads:
        count_reads(handle, read_in_block(found.hits, shown))
    return Recalled(packed.text, shown, packed.records, considered)


def _now(handle: object) -> datetime:
    """The time of the memory's own clock, if the handle has one."""
    return handle.memory.clock() if _has_clock(handle) else utc_now()


def _label_of(handle: object) -> Callable[[MemoryRecord], str | None]:
    """The label of the space that a record is from; without spaces, none has one."""
    return handle.label_of if _has_spaces(handle) else lambda _: None


def _varied(options: RecallOptions, max_chars: int | None, limit: int | None) -> RecallOptions:
    """The options with what a call varies."""
    if max_chars is not None:
        options = replace(options, max_chars=max_chars)
    if limit is not None:
        options = replace(options, limit=limit)
    return options


async def _chosen(
    handle: Searching, asked: InContext, options: RecallOptions, where: Where, now: datetime, *, explain: bool
) -> tuple[Found, Choice]:
    """Search, and choose lines from the hits; if too many of them were left out, again, without what the prompt shows
    or for more hits."""
    from memory_core.recall.asking import find  # noqa: PLC0415
    from memory_core.recall.choosing import choose  # noqa: PLC0415
    from memory_core.recall.trust import trust_in  # noqa: PLC0415

    wanted = _lines_wanted(options)
    limit = min(max(wanted if options.limit is None else _PER_LINE * wanted, _FEWEST_HITS), _MOST_HITS)
    narrower = where if explain else asked.prompt.not_shown(where)
    if not asked.prompt.shows_few(limit - wanted):
        where = narrower
    while True:
        found = await find(
            handle, asked, limit=limit, where=where, mode=options.mode, floor=options.floor, explain=explain
        )
        longest = longest_text(options)
        trust = await trust_in(handle, options, found.hits)
        is_long = sum(len(hit.record.text) for hit in found.hits) > _LONG
        choice = await off_loop(is_long, choose, asked, found, options, longest=longest, now=now, trust=trust)
        useless = choice.doubtful + sum(reason not in _ALSO_OF_WORSE for reason, _ in choice.outcomes.values())
        if len(found.hits) < limit or not useless or limit - useless >= wanted or limit == MAX_LIMIT:
            return found, choice
        if where is narrower:
            limit = min(_MORE * limit, MAX_LIMIT)
        where = narrower


def _lines_wanted(options: RecallOptions) -> int:
    """About how many lines the block may have."""
    return min(options.about_chars() // _LINE_CHARS, _MOST_HITS if options.limit is None else options.limit)


async def _with_links(
    handle: Searching,
    lines: Sequence[Line],
    options: RecallOptions,
    where: Where,
    may_show: Callable[[MemoryRecord], bool],
) -> list[Line]:
    """The lines, with those of the records that the best ones link to after them."""
    from memory_core.recall.choosing import linked  # noqa: PLC0415

    wanted = {
        (line.record.app, line.record.user, link.id): line.key
        for line in reversed(lines[:_MOST_FOLLOWED])
        for link in line.record.links
        if link.relation in options.links
    }
    if not wanted:
        return list(lines)
    ids = {id_ for _, _, id_ in wanted}
    ids = ids if where.ids is None else ids & set(where.ids)
    page = await handle.list(where=replace(where, ids=tuple(ids)), limit=_MOST_HITS)
    more: defaultdict[Key, list[MemoryRecord]] = defaultdict(list)
    for record in page.records:
        if (linking := wanted.get(key_of(record))) is not None and may_show(record):
            more[linking].append(record)
    return linked(lines, more, longest_text(options))


def _with_causes(outcomes: Outcomes, later: Outcomes) -> Outcomes:
    """The outcomes, with the reason why a line came too late for the room."""
    return {
        key: later.get(key, outcome) if outcome[0] in ("budget", "limit") else outcome
        for key, outcome in outcomes.items()
    }


async def _considered(
    handle: Searching,
    query: str,
    options: RecallOptions,
    hits: Sequence[Hit],
    outcomes: Outcomes,
    later: Outcomes,
) -> tuple[Considered, ...]:
    """The outcome of every hit, and the hits found only without the floor or without the conditions."""
    considered = [
        Considered(hit, rank, *outcomes[key], later=None if key not in later else later[key][0])
        for rank, hit in enumerate(hits, 1)
        for key in [key_of(hit.record)]
    ]
    limit = max(len(hits), _FEWEST_HITS)
    wider: tuple[tuple[Reason, Where], ...] = (("floor", options.where), ("filter", ANY_STATE))
    for reason, where in wider:
        known = {key_of(each.hit.record) for each in considered}
        more = await handle.search(
            query, limit=limit, where=where, mode=options.mode, floor=False, explain=True, most_bytes=MOST_BYTES
        )
        for hit in more:
            key = key_of(hit.record)
            if key not in known:
                superseded = reason == "filter" and hit.record.state == "archived"
                found = ("superseded" if superseded else reason), None
                considered.append(Considered(hit, len(considered) + 1, *outcomes.get(key, found)))
    return tuple(considered)
