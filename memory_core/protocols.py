"""The protocols of a store: a store's author reads this page, and then `docs/howto/own-store.md`.

Over a database with transactions nobody writes any of it: `memory_core.storing.RowStore` is a `Store` over its rows.
The rules that it uses (`storage/rules/`) say in full what each method means, for every store.
`memory_core.testing.StoreContract` checks both.
"""

from __future__ import annotations

import os
from asyncio import Future
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from memory_core.models import (
    Deleted,
    ErasureReceipt,
    Finding,
    Hit,
    Known,
    MemoryRecord,
    Page,
    Patch,
    Scope,
    Stats,
    Version,
)
from memory_core.requests import ListRequest, SearchRequest
from memory_core.supplied import Embedder
from memory_core.values.progress import ProgressCallback
from memory_core.where.where import Where


class Reads(Protocol):
    """The reads. Every call is bounded by a scope whose user is set, and never reaches further."""

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        """See `rules.search`: the best hits of one owner, or of several as if one owner had all their records."""
        ...

    async def versions(self, scope: Scope, id: str) -> list[Version]:  # noqa: A002  (the record's own word)
        """The texts of a record, oldest first, the current one last and open; empty if there is no such record."""
        ...

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        """See `rules.page`: records that satisfy the request, without ranking."""
        ...


class Writes(Protocol):
    """The writes, bounded like the reads.

    A write returns only when it is durable, and is applied completely or not at all. A store that cannot promise the
    second for a write of several records says so (`has_atomic_batches`): each of its records is applied completely or
    not at all, a failure in the middle raises `UnfinishedWriteError`, and repeating the call is safe.
    """

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        """See `rules.add`. `embed_later` returns before vectors are computed."""
        ...

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str], embed_later: bool
    ) -> list[MemoryRecord]:
        """See `rules.put`. A store may compute vectors first in spite of `embed_later`."""
        ...

    async def update(
        self,
        scope: Scope,
        id: str,  # noqa: A002
        patch: Patch,
        *,
        expected_version: int | None,
    ) -> MemoryRecord:
        """See `rules.update`."""
        ...

    async def delete(
        self,
        scope: Scope,
        where: Where,
        *,
        forget: bool,
        versions: Mapping[str, int] | None = None,
        keeps_derived: bool = False,
    ) -> Deleted:
        """See `rules.delete`. A store may find the records first and delete them in parts, each of which is whole."""
        ...


class Expiry(Protocol):
    """The operations on records whose time is over; they are bounded, durable and atomic like the writes."""

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """See `rules.postpone`."""
        ...

    async def sweep(self, scope: Scope) -> int:
        """See `rules.sweep`; perhaps in parts."""
        ...


class Store(Reads, Writes, Expiry, Protocol):
    """Stores the records of all owners: these twelve methods. Having the methods of a protocol below is optional."""

    async def open(self) -> None:
        """Prepare the store; called once, before anything else."""
        ...

    async def close(self) -> None:
        """Finish accepted writes, then release files and connections; may be called twice."""
        ...

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """See `rules.erase`: remove everything in the scope from every file."""
        ...


def has_atomic_batches(store: Store) -> bool:
    """True if a write of several records is applied completely or not at all; a store without the attribute
    `atomic_batches` promises it."""
    return bool(getattr(store, "atomic_batches", True))


@runtime_checkable
class Adding(Protocol):
    """Optional for a store: a faster `add` for single records from many callers."""

    def begin_add(
        self, scope: Scope, record: MemoryRecord, done: Future[MemoryRecord | None], *, embed_later: bool
    ) -> None:
        """`Writes.add` without a task: returns at once, answers `done` (`loop.answer`) once it is durable."""
        ...


@runtime_checkable
class LeanReads(Protocol):
    """Optional for a store: reads of a few fields. Of another store, `list` reads the whole records for them."""

    async def stats(self, scope: Scope, where: Where) -> Stats:
        """Count the records in the scope that satisfy `where`."""
        ...

    async def pending(self, scope: Scope) -> int:
        """`Stats.vectors_pending`, without the other counts."""
        ...

    async def known(self, scope: Scope, keys: Sequence[str] | None) -> list[Known]:
        """The records in scope that have a source key, or one of `keys`; in every state, also those that were left, by
        `occurred_at` and, where that is equal, in order of arrival."""
        ...

    async def collections(self, scope: Scope, where: Where) -> list[str]:
        """The distinct collections of the records that satisfy `where`, sorted by code points."""
        ...


@runtime_checkable
class Watched(Protocol):
    """The part of `Maintained` that changes nothing."""

    async def owners(self) -> list[Scope]:
        """All owners that have a record, by app and user; no other key is bound."""
        ...

    async def check(self) -> list[Finding]:
        """The defects of the store, read in full."""
        ...

    async def probe(self) -> int | None:
        """Do what a write does, or a read if the store only reads, and change no record; returns how many vectors are
        pending in the whole store, `None` if it does not know.

        Raises:
            StorageError: A write, or a read, would fail now.
        """
        ...


@runtime_checkable
class Maintained(Watched, Protocol):
    """Optional for a store: the operations on all owners at once. What it cannot do raises `UnsupportedError`."""

    async def vacuum(self, *, scrub: bool = False) -> bool:
        """Return the space of deleted records, if the store does not do so automatically; or, with `scrub`, make these
        records unreadable in its files and logs.

        Returns:
            With `scrub`, whether nothing of them remains; `False` if a reader still needs an older state (the next call
            completes it), or if the store cannot tell.
        """
        ...

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None = None) -> int:
        """See `Memory.reembed`; the store owns the embedder once this has returned."""
        ...

    async def backup(self, path: str | os.PathLike[str], *, overwrite: bool, progress: ProgressCallback | None) -> Path:
        """See `Memory.backup`."""
        ...
