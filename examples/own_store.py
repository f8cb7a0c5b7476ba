"""A store of your own, in dictionaries: what a database has to offer, and nothing of what a write means.

`ShelfRows` are the rows of one owner, by eleven functions that decide nothing, and `Shelves` opens transactions over
them; `RowStore` makes a store of that. `docs/howto/own-store.md` explains it,
and the tests run the contract of stores over it, against the installed wheel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from memory_core import DuplicateIdError, Memory, MemoryRecord, Scope, Where, utc_now
from memory_core.adapting import ANY_STATE
from memory_core.storing import Prepared, RowStore, rules

Texts = list[tuple[int, str, datetime]]
"""Revision, text, until when."""
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


class ShelfRows:
    """The rows of one owner: `rules.Rows`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def with_ids(self, ids: Sequence[str]) -> list[rules.Row]:
        wanted = set(ids)
        return [row for row in self._rows() if row.record.id in wanted]

    def with_source_keys(self, source_keys: Sequence[str]) -> Mapping[str, rules.Row | None]:
        found: dict[str, rules.Row | None] = dict.fromkeys(self._shelf.forgotten.intersection(source_keys))
        wanted = set(source_keys)
        for row in self._rows():
            if row.record.source_key is not None and row.record.source_key in wanted:
                found[row.record.source_key] = row
        return found

    def linking_to(self, ids: Collection[str]) -> list[rules.Row]:
        return [row for row in self._rows() if any(link.id in ids for link in row.record.links)]

    def earlier(self, row: rules.Row) -> Texts:
        return self._shelf.earlier.get(row.key, [])

    def matching(self, scope: Scope, where: Where, now: datetime) -> list[rules.Head]:
        return [head_of(row) for row in rules.matching(self._rows(), scope, where, now)]

    def expired(
        self,
        scope: Scope,
        now: datetime,
        new: Sequence[MemoryRecord] = (),  # noqa: ARG002  (finds all)
    ) -> list[rules.Head]:
        rows = rules.matching(self._rows(), scope, ANY_STATE, rules.BEFORE_EVERYTHING)
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

    def _rows(self) -> list[rules.Row]:
        return [rules.Row(key, record) for key, record in self._shelf.records.items()]


def head_of(row: rules.Row) -> rules.Head:
    return rules.Head(row.key, row.record.id, row.record.source_key, row.record.version, row.record.links)


class Shelves:
    """The records of this process: `Database`."""

    def __init__(self) -> None:
        self._shelves: dict[Scope, Shelf] = {}

    def open(self) -> None: ...

    def close(self) -> None: ...

    @contextmanager
    def transaction(self, owner: Scope) -> Generator[ShelfRows]:
        shelf = self._shelves.get(owner, Shelf()).copy()
        yield ShelfRows(shelf)
        self._shelves[owner] = shelf  # all of a write happens, or none of it

    def scrub(self) -> bool:
        return True  # there are no files


def shelf_store(clock: Callable[[], datetime] = utc_now) -> RowStore:
    return RowStore(Shelves(), clock=clock)


async def main() -> None:
    async with Memory(shelf_store()) as memory:
        ann = memory.bind(user="ann")
        await ann.add("Ann drinks jasmine tea")
        print(*[hit.record.text for hit in await ann.search("Which tea does Ann drink?")], sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
