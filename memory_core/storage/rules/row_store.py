"""A whole store over a database that has transactions, by the rules of this folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from memory_core.errors import RecordNotFoundError
from memory_core.models import Deleted, ErasureReceipt, Hit, MemoryRecord, Page, Patch, Scope, Version
from memory_core.requests import ListRequest, SearchRequest
from memory_core.retrieval.hits import within
from memory_core.storage.rules import adding, changing, deleting, putting, reading
from memory_core.storage.rules.deleting import BEFORE_EVERYTHING
from memory_core.storage.rules.rows import Row, Rows
from memory_core.storage.shared.merging import owner_of
from memory_core.storage.shared.prepared import prepare
from memory_core.storage.shared.versions import versions_of
from memory_core.supplied import Clock
from memory_core.where.where import ANY_STATE, Where

Records = list[MemoryRecord]  # named, because the store has a method `list`
Added = list[MemoryRecord | None]
Hits = list[Hit]
Versions = list[Version]


class Database(Protocol):
    """The methods of a database that `RowStore` calls, all on one loop, one call after the other."""

    def open(self) -> None:
        """Prepare the database; called once, before anything else."""
        ...

    def close(self) -> None:
        """Release files and connections; may be called twice."""
        ...

    def transaction(self, owner: Scope) -> AbstractContextManager[Rows]:
        """The rows of an owner. What is written to them is durable once the transaction ends; if it ends by an
        exception, nothing is written."""
        ...

    def scrub(self) -> bool:
        """Make deleted rows unreadable in all files; returns whether nothing of them remains."""
        ...


class RowStore:
    """`Store` over a database: a beginning, which searches by words alone and reads all records of an owner for it.

    Each call blocks the core loop until the database has answered. A store of many records, or one at the other end of
    a network, has its own `search` and `list`, and its own thread.
    """

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def open(self) -> None:
        """See `Store.open`."""
        self._database.open()

    async def close(self) -> None:
        """See `Store.close`."""
        self._database.close()

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> Hits:
        """See `reading.search`."""
        owners = [(scope, self._all(scope)) for scope in scopes]
        hits = reading.search(owners, request, self._clock())
        return within([replace(hit, record=_own(hit.record)) for hit in hits], request)

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        """See `reading.page`."""
        now = self._clock()
        with self._transaction(scope) as rows:
            page = reading.page(_every_row(rows, scope), scope, request, now)
            records = reading.touch(rows, page.records, now) if request.touch else page.records
        return replace(page, records=tuple(map(_own, records)))

    async def versions(self, scope: Scope, id: str) -> Versions:  # noqa: A002  (the record's own word)
        """See `Store.versions`."""
        with self._transaction(scope) as rows:
            found = reading.matching(rows.with_ids([id]), scope, ANY_STATE, self._clock())
            return [version for row in found for version in versions_of(row.record, rows.earlier(row))]

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,  # noqa: ARG002  (there are no vectors)
        versions: Mapping[str, int] | None = None,
    ) -> Added:
        """See `adding.add`."""
        if not records:
            return []
        with self._transaction(scope) as rows:
            stored = adding.add(rows, scope, [prepare(record) for record in records], versions)
            return [record if record is None else _own(record) for record in stored]

    async def put(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        remove: Collection[str],
        embed_later: bool,  # noqa: ARG002
    ) -> Records:
        """See `putting.put`."""
        with self._transaction(scope) as rows:
            items = [prepare(record) for record in records]
            return [_own(record) for record in putting.put(rows, scope, items, remove, self._clock())]

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        """See `changing.update`."""
        with self._transaction(scope) as rows:
            known = rows.with_ids([id])
            if not known:
                raise RecordNotFoundError(f"there is no memory {id!r}")
            item = prepare(known[0].record)
            return _own(changing.update(rows, scope, patch, item, self._clock(), expected_version))

    async def delete(
        self,
        scope: Scope,
        where: Where,
        *,
        forget: bool,
        versions: Mapping[str, int] | None = None,
        keeps_derived: bool = False,
    ) -> Deleted:
        """See `deleting.delete`."""
        now = self._clock()
        with self._transaction(scope) as rows:
            return deleting.delete(
                rows, scope, where, now, forget=forget, versions=versions, keeps_derived=keeps_derived
            )

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """See `putting.postpone`."""
        with self._transaction(scope) as rows:
            putting.postpone(rows, scope, expiries, self._clock())

    async def sweep(self, scope: Scope) -> int:
        """See `deleting.sweep`."""
        with self._transaction(scope) as rows:
            return deleting.sweep(rows, scope, self._clock())

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """See `deleting.erase`."""
        now = self._clock()
        with self._transaction(scope) as rows:
            gone = reading.matching(_every_row(rows, scope), scope, ANY_STATE, BEFORE_EVERYTHING)
            sessions = {row.record.session for row in gone} - {None}
            records, derived = deleting.erase(rows, scope, now)
        return ErasureReceipt(records, len(sessions), now, files_clean=self._database.scrub(), derived=derived)

    def _all(self, scope: Scope) -> Sequence[Row]:
        with self._transaction(scope) as rows:
            return _every_row(rows, scope)

    def _transaction(self, scope: Scope) -> AbstractContextManager[Rows]:
        return self._database.transaction(owner_of(scope))


def _every_row(rows: Rows, scope: Scope) -> Sequence[Row]:
    """All of an owner's, in order of arrival."""
    heads = rows.matching(owner_of(scope), ANY_STATE, BEFORE_EVERYTHING)
    return sorted(rows.with_ids([head.id for head in heads]), key=lambda row: row.key)


def _own(record: MemoryRecord) -> MemoryRecord:
    """A record whose data the caller may change."""
    return replace(record, data=deepcopy(record.data))
