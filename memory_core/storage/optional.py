"""Optional operations of a store: derived from the required ones, or refused with `UnsupportedError`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from memory_core.errors import UnsupportedError
from memory_core.models import EMPTY_STATS, Hit, Known, MemoryRecord, Scope, Stats, Version
from memory_core.protocols import (
    Counting,
    KeyValue,
    Knowing,
    ListRequest,
    Maintained,
    SearchingTogether,
    SearchRequest,
    Store,
    Versioned,
)
from memory_core.where.where import ANY_STATE, Where

_PAGE = 1_000


@runtime_checkable
class PuttingLater(Protocol):
    """Optional for a `KeyValue`: putting records before their vectors are computed."""

    async def put_later(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str]
    ) -> list[MemoryRecord]:
        """`KeyValue.put` that returns before new vectors are computed; until then, words find the records."""
        ...


@runtime_checkable
class Scrubbing(Protocol):
    """Optional for a store: making deleted records unreadable in its files."""

    async def scrub(self) -> bool:
        """Overwrite what remains of deleted records in files and logs; returns whether nothing remains.

        `False` if a reader still needs an older state: the next call completes it.
        """
        ...


@runtime_checkable
class CountingPending(Protocol):
    """Optional for a `Counting` store: the vectors that are still to be computed, without the other counts."""

    async def pending(self, scope: Scope) -> int:
        """`Stats.vectors_pending` of the scope."""
        ...


@runtime_checkable
class Probing(Protocol):
    """Optional for a store: telling whether it works."""

    async def probe(self) -> int | None:
        """Do what a write does, or a read if the store only reads, and change no record; returns how many vectors are
        pending in the whole store, `None` if it does not know.

        Raises:
            StorageError: A write, or a read, would fail now.
        """
        ...


async def search(store: Store, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
    """`Records.search` of one owner, or `SearchingTogether.search_together` of several.

    Raises:
        UnsupportedError: The store cannot rank several owners together.
    """
    if len(scopes) == 1:
        return await store.search(scopes[0], request)
    if not isinstance(store, SearchingTogether):
        raise UnsupportedError(
            f"a {type(store).__name__} cannot rank several owners together; search each handle by itself"
        )
    return await store.search_together(scopes, request)


async def pending(store: Store, scope: Scope) -> int:
    """See `CountingPending.pending`."""
    return (
        await store.pending(scope)
        if isinstance(store, CountingPending)
        else (await stats(store, scope)).vectors_pending
    )


async def scrub(store: Store) -> bool:
    """See `Scrubbing.scrub`; `False` for a store that cannot do it."""
    return isinstance(store, Scrubbing) and await store.scrub()


def key_value(store: Store) -> KeyValue:
    """The store as a key-value store.

    Raises:
        UnsupportedError: The store lacks these operations.
    """
    if isinstance(store, KeyValue):
        return store
    raise UnsupportedError(f"a {type(store).__name__} has no put, postpone and sweep; use add, update and delete")


async def put(
    store: Store, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str], embed_later: bool
) -> list[MemoryRecord]:
    """See `KeyValue.put`, or, with `embed_later`, `PuttingLater.put_later` if the store has it.

    Raises:
        UnsupportedError: The store has neither.
    """
    if embed_later and isinstance(store, PuttingLater):
        return await store.put_later(scope, records, remove=remove)
    return await key_value(store).put(scope, records, remove=remove)


async def probe(store: Store) -> int | None:
    """See `Probing.probe`; a store that cannot do it is asked for its owners."""
    if isinstance(store, Probing):
        return await store.probe()
    await maintained(store).owners()
    return None


def maintained(store: Store) -> Maintained:
    """The store with its operations on all owners.

    Raises:
        UnsupportedError: The store lacks these operations.
    """
    if isinstance(store, Maintained):
        return store
    raise UnsupportedError(f"a {type(store).__name__} has no owners, check and vacuum; ask for one owner at a time")


async def versions(store: Store, scope: Scope, id: str) -> list[Version]:  # noqa: A002  (the record's own word)
    """See `Versioned.versions`.

    Raises:
        UnsupportedError: The store does not keep earlier texts.
    """
    if isinstance(store, Versioned):
        return await store.versions(scope, id)
    raise UnsupportedError(f"a {type(store).__name__} keeps no earlier texts; records that superseded others are kept")


async def collections(store: Store, scope: Scope, where: Where) -> list[str]:
    """See `KeyValue.collections`."""
    if isinstance(store, KeyValue):
        return await store.collections(scope, where)
    return sorted({record.collection async for record in _all(store, scope, where) if record.collection is not None})


async def known(store: Store, scope: Scope, keys: Sequence[str] | None) -> list[Known]:
    """See `Knowing.known`."""
    if isinstance(store, Knowing):
        return await store.known(scope, keys)
    where = replace(ANY_STATE, source_keys=keys)
    return [Known.of(record) async for record in _all(store, scope, where) if record.source_key is not None]


async def stats(store: Store, scope: Scope) -> Stats:
    """See `Counting.stats`."""
    if isinstance(store, Counting):
        return await store.stats(scope)
    records = [record async for record in _all(store, scope, ANY_STATE)]
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
