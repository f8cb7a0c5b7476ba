"""Optional operations of a store: derived from the required ones, or refused with `UnsupportedError`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from memory_core.errors import UnsupportedError
from memory_core.models import EMPTY_STATS, Known, MemoryRecord, Scope, Stats
from memory_core.protocols import LeanReads, Maintained, Store
from memory_core.requests import ListRequest
from memory_core.where.where import ANY_STATE, Where

_PAGE = 1_000


def maintained(store: Store) -> Maintained:
    """The store with its operations on all owners.

    Raises:
        UnsupportedError: The store lacks these operations.
    """
    if isinstance(store, Maintained):
        return store
    raise UnsupportedError(
        f"a {type(store).__name__} has no owners, check, vacuum, reembed and backup; ask for one owner at a time"
    )


async def scrub(store: Store) -> bool:
    """See `Maintained.vacuum`; `False` for a store that lacks it."""
    return isinstance(store, Maintained) and await store.vacuum(scrub=True)


async def collections(store: Store, scope: Scope, where: Where) -> list[str]:
    """See `LeanReads.collections`."""
    if isinstance(store, LeanReads):
        return await store.collections(scope, where)
    return sorted({record.collection async for record in _all(store, scope, where) if record.collection is not None})


async def known(store: Store, scope: Scope, keys: Sequence[str] | None) -> list[Known]:
    """See `LeanReads.known`."""
    if isinstance(store, LeanReads):
        return await store.known(scope, keys)
    where = replace(ANY_STATE, source_keys=keys)
    return [Known.of(record) async for record in _all(store, scope, where) if record.source_key is not None]


async def pending(store: Store, scope: Scope) -> int:
    """See `LeanReads.pending`."""
    return await store.pending(scope) if isinstance(store, LeanReads) else 0


async def stats(store: Store, scope: Scope, where: Where) -> Stats:
    """See `LeanReads.stats`."""
    if isinstance(store, LeanReads):
        return await store.stats(scope, where)
    records = [record async for record in _all(store, scope, where)]
    if not records:
        return EMPTY_STATS
    return Stats(
        records=len(records),
        by_kind=Counter(record.kind for record in records),
        by_tier=Counter(record.tier for record in records),
        by_state=Counter(record.state for record in records),
        left=sum(record.left for record in records),
        sessions=len({record.session for record in records} - {None}),
        oldest=min(record.occurred_at for record in records),
        newest=max(record.occurred_at for record in records),
        average_importance=sum(record.importance for record in records) / len(records),
        average_confidence=sum(record.confidence for record in records) / len(records),
        vectors_pending=0,
        bytes=None,
    )


async def _all(store: Store, scope: Scope, where: Where) -> AsyncIterator[MemoryRecord]:
    cursor: str | None = None
    while True:
        request = ListRequest(where=where, order="oldest", limit=_PAGE, cursor=cursor, touch=False)
        page = await store.list(scope, request)
        for record in page.records:
            yield record
        if (cursor := page.cursor) is None:
            return
