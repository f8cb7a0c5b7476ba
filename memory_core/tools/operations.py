"""The operations of the tools of all frameworks on a memory, each once; `docs/tools.md` shows which tool does which.

Invariant: a tool of a framework is a name, a schema and words around one operation, which is a method of `BoundMemory`
or, where agents need more than that, a function of this module. So whichever framework calls it,

- what is known already is not stored again,
- memories that say the same sentence are shown as one,
- a change is made to what was read, never to what another caller has written since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from memory_core.agent_memory import AgentMemory
from memory_core.concurrency.loop import on_core
from memory_core.errors import ConflictError, RecordNotFoundError, UnsupportedError, reason_for_log
from memory_core.handle import BoundMemory
from memory_core.models import Draft, Hit, MemoryRecord, Mode, Order, Patch
from memory_core.profile import tags_of_pin
from memory_core.records.draft_to_record import new_record
from memory_core.retrieval.equal_statements import equal_to, likeness
from memory_core.retrieval.equal_texts import equal_form
from memory_core.retrieval.hits import rest_of
from memory_core.short_page import short_page
from memory_core.spaces import PRIVATE
from memory_core.values.ids import new_id
from memory_core.where.where import EVERYTHING, Where

logger = logging.getLogger(__name__)

Operation = Callable[..., Awaitable[object]]
"""The work of a tool: a method of `BoundMemory`, or a function of this module."""
T = TypeVar("T")

_turns: Final[WeakValueDictionary[object, asyncio.Lock]] = WeakValueDictionary()
"""A lock for each text that is being stored, by loop, owner, space and text."""
_adding: Final[set[asyncio.Task[MemoryRecord]]] = set()
"""The tasks that store: asyncio itself holds tasks weakly."""
MOST_FETCHED: Final = 1_000
"""Maximum number of hits that a search reads to find different sentences."""
_MOST_READS: Final = 5
"""Maximum number of reads by which a listing fills a page with different sentences."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of something that a tool was to store."""

    record: MemoryRecord
    is_known: bool = False
    """True if the memory was there before, so that nothing was stored."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of memories, those that say the same sentence together."""

    groups: list[list[MemoryRecord]]
    cursor: str | None
    """Of the next page; `None` on the last one."""


async def store(memory: AgentMemory, draft: Draft, *, space: str = PRIVATE) -> Stored:
    """Store a memory, unless a memory with an equal text represents it.

    A client that gives up and repeats its call, and calls of this process that store the same at once, store it once: a
    call whose caller is cancelled is done all the same, and those that store the same wait for it. Two processes that
    store the same within milliseconds may both do so; tools show one, and `maintain` merges them. A memory of somebody
    else's that is no `BoundMemory` stores every draft.

    Args:
        memory: The memory that it is stored in.
        draft: Its id, if it has one, must be new.
        space: See `BoundMemory.add`.
    """
    if not isinstance(memory, BoundMemory):
        return Stored(await (memory.add(draft) if space == PRIVATE else memory.add(draft, space=space)))
    named = draft if draft.id is not None else replace(draft, id=new_id())
    record = await on_core(_added_once, memory, named, space)
    return Stored(record, is_known=record.id != named.id)


async def _added_once(memory: BoundMemory, draft: Draft, space: str) -> MemoryRecord:
    """`add` in turn with all that stores the same; called on the core loop."""
    loop, scope = asyncio.get_running_loop(), memory.own.scope
    turn = _turns.setdefault((loop, scope.app, scope.user, space, equal_form(draft.text)), asyncio.Lock())

    async def in_turn() -> MemoryRecord:
        async with turn:
            return await memory.add(draft, space=space, on_duplicate="refuse")

    adding = asyncio.create_task(in_turn(), name="memory-core store")
    _adding.add(adding)
    adding.add_done_callback(_adding.discard)
    try:
        return await asyncio.shield(adding)
    except asyncio.CancelledError:
        adding.add_done_callback(_ended_unseen)
        raise


def _ended_unseen(adding: asyncio.Task[MemoryRecord]) -> None:
    """Log why something was not stored whose caller has given up, since nobody else learns it."""
    if not adding.cancelled() and (error := adding.exception()) is not None:
        logger.warning("a memory was not stored after its caller had given up: %s", reason_for_log(error))


async def store_many(memory: BoundMemory, drafts: Sequence[Draft], *, replacing: Collection[str] = ()) -> list[Stored]:
    """Store memories, all or none of them, each as `store` does.

    Args:
        memory: The memory that they are stored in.
        drafts: Each with an id and a source key.
        replacing: Ids of memories to write whatever is known; those that exist are replaced.

    Returns:
        What became of each, in order.

    Raises:
        DuplicateIdError: The id of a draft belongs to a memory with another source key; nothing was stored.
    """
    now, known, news = memory.now(), dict[int, MemoryRecord](), dict[object, Draft]()
    keys = list[object]()
    for number, draft in enumerate(drafts):
        record = new_record(draft, memory.scope, now)
        key: object = draft.id if draft.id in replacing else (equal_form(draft.text), likeness(record))
        keys.append(key)
        if draft.id not in replacing and (equal := await equal_to(memory, record)):
            known[number] = equal[0]
        else:
            news.setdefault(key, draft)
    put = await memory.put_many(list(news.values())) if news else []
    stored = dict(zip(news, put, strict=True))
    return [
        Stored(known[number], is_known=True)
        if number in known
        else Stored(stored[key], news[key] is not drafts[number])
        for number, key in enumerate(keys)
    ]


async def known_already(memory: BoundMemory, draft: Draft) -> MemoryRecord | None:
    """The record for whose sake `store` would store nothing; `None` if the draft is new."""
    equal = await equal_to(memory, new_record(draft, memory.scope, memory.now()))
    return equal[0] if equal else None


class Groups(list[list[Hit]]):
    """Hits, those that say the same sentence together; and, like `Hits`, the ids that were not read."""

    def __init__(self, groups: Iterable[list[Hit]], rest: Iterable[str]) -> None:
        super().__init__(groups)
        self.rest = tuple(rest)


class Finding(Protocol):
    """A search that knows what it searches, as `BoundMemory.search` does."""

    def __call__(self, query: str, *, limit: int, where: Where, mode: Mode, floor: bool) -> Awaitable[list[Hit]]:
        """See `BoundMemory.search`."""
        ...


async def search(
    find: Finding,
    query: str,
    *,
    limit: int,
    where: Where = EVERYTHING,
    mode: Mode = "hybrid",
    floor: bool = True,
    apart: Callable[[MemoryRecord], object] = lambda _: None,
) -> Groups:
    """Search for different memories, best first; those that say the same sentence are together, the best of them first.

    Args:
        find: `BoundMemory.search`, or another search like it.
        query: See there, as for the following.
        limit: Maximum number of different memories.
        where: Conditions.
        mode: The way to search.
        floor: True if only relevant memories are found.
        apart: The fields that must be equal, too, in memories that are shown as one.
    """
    fetched = limit
    while True:
        hits = await find(query, limit=fetched, where=where, mode=mode, floor=floor)
        groups = same_sentences(hits, lambda hit: hit.record, apart)
        if len(groups) >= limit or len(hits) < fetched or fetched >= MOST_FETCHED:
            return Groups(groups[:limit], rest_of(hits)[: max(limit - len(groups), 0)])
        fetched = min(4 * fetched, MOST_FETCHED)


async def list_page(
    memory: AgentMemory,
    *,
    limit: int,
    where: Where = EVERYTHING,
    order: Order = "newest",
    cursor: str | None = None,
    most_bytes: int | None = None,
) -> Listed:
    """A page of at most `limit` different memories; those of the page that say the same sentence are together.

    Args:
        memory: The memory to read; only a `BoundMemory` has more than one page.
        limit: Maximum number of different memories; with many equal ones there may be fewer, and a cursor.
        where: See `BoundMemory.list`, as for the following.
        order: The order of the first memory of each group.
        cursor: Of the page before.
        most_bytes: The page of a `BoundMemory` ends when its memories have so many bytes.
    """
    if not isinstance(memory, BoundMemory):
        page = await memory.list(where=where, order=order, limit=limit)
        return Listed(same_sentences(page.records, lambda record: record), None)
    records: list[MemoryRecord] = []
    groups: list[list[MemoryRecord]] = []
    for _ in range(_MOST_READS):
        asked = limit - len(groups)
        page = await (
            memory.list(where=where, order=order, limit=asked, cursor=cursor)
            if most_bytes is None
            else short_page(memory, where=where, order=order, limit=asked, cursor=cursor, most_bytes=most_bytes)
        )
        records += page.records
        groups, cursor = same_sentences(records, lambda record: record), page.cursor
        if cursor is None or len(groups) >= limit or len(page.records) < asked:
            break
    return Listed(groups, cursor)


async def change(
    memory: AgentMemory,
    id: str,  # noqa: A002  (the record's own word)
    patched: Callable[[MemoryRecord | None], Patch],
) -> MemoryRecord:
    """Change a memory; if another caller changes it meanwhile, what they wrote is read and changed.

    Args:
        memory: The memory that has it.
        id: Its id.
        patched: The change for what the memory says now; `None` for a memory of somebody else's that has no ids.

    Raises:
        RecordNotFoundError: There is no such memory.
    """
    if not isinstance(memory, BoundMemory):
        return await memory.update(id, patched(await _read(memory, id)))
    while True:
        if (record := await memory.get(id)) is None:
            raise not_found(id)
        try:
            return await memory.update(id, patched(record), expected_version=record.version)
        except ConflictError:
            continue


async def pin(memory: AgentMemory, id: str, *, owner: str | None, pinned: bool) -> MemoryRecord:  # noqa: A002
    """Let a memory stand in every prompt, or no longer.

    Args:
        memory: The memory that has it.
        id: Its id.
        owner: The name under which the owner of the memory speaks.
        pinned: True if it is pinned from now on.

    Raises:
        InvalidInputError: Somebody else said it, or a person pinned it: only a person can change that.
        RecordNotFoundError: There is no such memory, or another one has taken its place.
    """

    def patched(record: MemoryRecord | None) -> Patch:
        if record is None or record.state != "active" or record.left:
            raise not_found(id)
        return Patch(tags=tags_of_pin(record, owner=owner, pinned=pinned))

    return await change(memory, id, patched)


def same_sentences(
    found: Iterable[T],
    record_of: Callable[[T], MemoryRecord],
    apart: Callable[[MemoryRecord], object] = lambda _: None,
) -> list[list[T]]:
    """The hits in their order, with the memories of one owner that say the same sentence together.

    Args:
        found: Hits or records.
        record_of: The record of each.
        apart: The fields that must be equal, too, in memories that are together.
    """
    groups: dict[object, list[T]] = {}
    for one in found:
        record = record_of(one)
        key = record.app, record.user, equal_form(record.text), apart(record)
        groups.setdefault(key, []).append(one)
    return [*groups.values()]


def not_found(id: str) -> RecordNotFoundError:  # noqa: A002
    """The error of a tool that is given an unknown id."""
    return RecordNotFoundError(f"there is no memory {id!r}")


async def _read(memory: AgentMemory, id: str) -> MemoryRecord | None:  # noqa: A002
    try:
        page = await memory.list(where=Where(ids=(id,)), limit=1)
    except UnsupportedError:
        return None
    return page.records[0] if page.records else None
