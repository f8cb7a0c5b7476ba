"""A store of your own, in dictionaries: what a database has to offer, and nothing of what a write means.

`ShelfRows` are the rows of one owner, by ten functions that decide nothing; `memory_core.adapting.rules` does the rest.
`docs/howto/own-store.md` explains it, and the tests run the contract of stores over it, against the installed wheel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from memory_core import (
    Deleted,
    DuplicateIdError,
    ErasureReceipt,
    Hit,
    Memory,
    MemoryRecord,
    Page,
    Patch,
    RecordNotFoundError,
    Scope,
    Version,
    Where,
    utc_now,
)
from memory_core.adapting import STATES
from memory_core.storing import ListRequest, Prepared, SearchRequest, prepare, rules, versions_of

T = TypeVar("T", MemoryRecord, MemoryRecord | None)
Texts = list[tuple[int, str, datetime]]
"""Revision, text, until when."""
Stored = list[MemoryRecord | None]
Records = list[MemoryRecord]
Hits = list[Hit]
Versions = list[Version]
Names = list[str]
EVERYTHING = Where(states=STATES, left=None)
KEPT_TEXTS = 20


@dataclass
class Shelf:
    """Everything of one owner."""

    records: dict[int, MemoryRecord] = field(default_factory=dict[int, MemoryRecord])
    """By key, in order of arrival."""
    earlier: dict[int, Texts] = field(default_factory=dict[int, Texts])
    forgotten: set[str] = field(default_factory=set[str])
    next: int = 0

    def copy(self) -> Shelf:
        """A shelf to work on, which replaces this one if nothing is raised."""
        texts = {key: list(earlier) for key, earlier in self.earlier.items()}
        return Shelf(dict(self.records), texts, set(self.forgotten), self.next)

    @property
    def rows(self) -> list[rules.Row]:
        """All rows, in order of arrival."""
        return [rules.Row(key, record) for key, record in self.records.items()]


class ShelfRows:
    """The rows of one owner: `rules.Rows`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def with_ids(self, ids: Sequence[str]) -> list[rules.Row]:
        return [row for row in self._shelf.rows if row.record.id in ids]

    def with_source_keys(self, source_keys: Sequence[str]) -> Mapping[str, rules.Row | None]:
        forgotten = self._shelf.forgotten.intersection(source_keys)
        stored = {row.record.source_key: row for row in self._shelf.rows if row.record.source_key in source_keys}
        return {**dict.fromkeys(forgotten), **{source: row for source, row in stored.items() if source is not None}}

    def linking_to(self, ids: Collection[str]) -> list[rules.Row]:
        return [row for row in self._shelf.rows if any(link.id in ids for link in row.record.links)]

    def matching(self, scope: Scope, where: Where, now: datetime) -> list[rules.Head]:
        return [head_of(row) for row in rules.matching(self._shelf.rows, scope, where, now)]

    def expired(
        self,
        scope: Scope,
        now: datetime,
        new: Sequence[MemoryRecord] = (),  # noqa: ARG002  (finds all)
    ) -> list[rules.Head]:
        rows = rules.matching(self._shelf.rows, scope, EVERYTHING, rules.BEFORE_EVERYTHING)
        return [head_of(row) for row in rows if row.record.expires_at is not None and row.record.expires_at <= now]

    def append(self, new: Sequence[Prepared]) -> None:
        ids = {record.id for record in self._shelf.records.values()}
        for record in (item.record for item in new):
            if record.id in ids:
                raise DuplicateIdError(f"there is a record of id {record.id!r} already")
            ids.add(record.id)
            self._shelf.records[self._shelf.next] = record
            self._shelf.next += 1

    def rewrite(self, row: rules.Row, item: Prepared) -> None:
        self.overwrite([(row, item.record)])  # nothing is derived here: a search analyses the texts

    def overwrite(self, changed: Sequence[tuple[rules.Row, MemoryRecord]]) -> None:
        for (key, before), after in changed:
            if rules.loses_source(before, after):
                self._shelf.earlier.pop(key, None)
            elif before.text != after.text:
                texts = self._shelf.earlier.setdefault(key, [])
                texts.append((before.rev, before.text, after.updated_at))
                del texts[:-KEPT_TEXTS]
            self._shelf.records[key] = after

    def remove(self, gone: Sequence[rules.Head]) -> None:
        for head in gone:
            del self._shelf.records[head.key]
            self._shelf.earlier.pop(head.key, None)

    def forget(self, source_keys: Sequence[str], *, forgotten: bool) -> None:
        if forgotten:
            self._shelf.forgotten.update(source_keys)
        else:
            self._shelf.forgotten.difference_update(source_keys)


def head_of(row: rules.Row) -> rules.Head:
    return rules.Head(row.key, row.record.id, row.record.source_key, row.record.version, row.record.links)


class ShelfStore:
    """Records of this process, found by their words: `Store`, `Versioned` and `KeyValue`."""

    def __init__(self, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._shelves: dict[Scope, Shelf] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,  # noqa: ARG002  (there are no vectors)
        versions: Mapping[str, int] | None = None,
    ) -> Stored:
        if not records:
            return []
        with self._writing(scope) as rows:
            return copied(rules.add(rows, scope, [prepare(record) for record in records], versions))

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        with self._writing(scope) as rows:
            known = rows.with_ids([id])
            if not known:
                raise RecordNotFoundError(f"there is no memory {id!r}")
            item = prepare(known[0].record)
            return copied([rules.update(rows, scope, patch, item, self._clock(), expected_version)])[0]

    async def delete(
        self,
        scope: Scope,
        where: Where,
        *,
        forget: bool,
        versions: Mapping[str, int] | None = None,
        keeps_derived: bool = False,
    ) -> Deleted:
        with self._writing(scope) as rows:
            now = self._clock()
            return rules.delete(rows, scope, where, now, forget=forget, versions=versions, keeps_derived=keeps_derived)

    async def erase(self, scope: Scope) -> ErasureReceipt:
        with self._writing(scope) as rows:
            gone = rows.matching(scope, EVERYTHING, rules.BEFORE_EVERYTHING)
            sessions = {row.record.session for row in rows.with_ids([head.id for head in gone])} - {None}
            records, derived = rules.erase(rows, scope, self._clock())
            return ErasureReceipt(records, len(sessions), self._clock(), files_clean=True, derived=derived)

    async def search(self, scope: Scope, request: SearchRequest) -> Hits:
        hits = rules.search(self._shelf(scope).rows, scope, request, self._clock())
        return [replace(hit, record=copied([hit.record])[0]) for hit in hits]

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        page, now = rules.page(self._shelf(scope).rows, scope, request, self._clock()), self._clock()
        if not request.touch:
            return replace(page, records=tuple(copied(page.records)))
        with self._writing(scope) as rows:
            read = [
                (row, replace(row.record, accessed_at=now, access_count=row.record.access_count + 1))
                for row in rows.with_ids([record.id for record in page.records])
            ]
            rows.overwrite(read)
            touched = {record.id: record for _, record in read}
            return replace(page, records=tuple(copied([touched[record.id] for record in page.records])))

    async def versions(self, scope: Scope, id: str) -> Versions:  # noqa: A002
        shelf = self._shelf(scope)
        found = rules.matching(shelf.rows, scope, replace(EVERYTHING, ids=(id,)), self._clock())
        return [version for row in found for version in versions_of(row.record, shelf.earlier.get(row.key, []))]

    async def put(self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str]) -> Records:
        with self._writing(scope) as rows:
            items = [prepare(record) for record in records]
            return copied(rules.put(rows, scope, items, remove, self._clock()))

    async def collections(self, scope: Scope, where: Where) -> Names:
        found = rules.matching(self._shelf(scope).rows, scope, where, self._clock())
        return sorted({row.record.collection for row in found if row.record.collection is not None})

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        with self._writing(scope) as rows:
            rules.postpone(rows, scope, expiries, self._clock())

    async def sweep(self, scope: Scope) -> int:
        with self._writing(scope) as rows:
            return rules.sweep(rows, scope, self._clock())

    def _shelf(self, scope: Scope) -> Shelf:
        return self._shelves.get(Scope(scope.app, scope.user)) or Shelf()

    @contextmanager
    def _writing(self, scope: Scope) -> Generator[ShelfRows]:
        """A transaction: all of a write happens, or none of it."""
        shelf = self._shelf(scope).copy()
        yield ShelfRows(shelf)
        self._shelves[Scope(scope.app, scope.user)] = shelf


def copied(records: Sequence[T]) -> list[T]:
    """Records whose data the caller may change; `None` stays."""
    return [record if record is None else replace(record, data=deepcopy(record.data)) for record in records]


async def main() -> None:
    async with Memory(ShelfStore()) as memory:
        ann = memory.bind(user="ann")
        await ann.add("Ann drinks jasmine tea")
        print(*[hit.record.text for hit in await ann.search("Which tea does Ann drink?")], sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
