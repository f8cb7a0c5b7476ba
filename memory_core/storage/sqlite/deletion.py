"""Delete the records that satisfy conditions: they are found first, and deleted a thousand at a time.

**No condition is decided inside a write transaction, and none deletes more than `MOST_DELETED` of the records found.**
A reader finds the records; a transaction deletes those that have the version in which they were found. One that
somebody else has changed meanwhile is looked at again by a reader. So what is deleted satisfied the conditions when it
was deleted, and other writes go in between. A batch is whole or not there; if the process dies between two, or the
caller is cancelled, the rest is there as before.

Records of a few names are deleted in one transaction, in which an index finds them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from memory_core.models import Deleted, Scope
from memory_core.storage.rules import deleting
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.row_filter import narrow
from memory_core.storage.sqlite.rows import MOST_DELETED, rows_of
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import STAYING, conditions, has_few_values, needs_python
from memory_core.where.where import Where

Versions = dict[int, int]
"""The version of each record when it was found, by key."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The records that are to be deleted, and the way."""

    scope: Scope
    where: Where
    now: datetime
    forget: bool
    keeps_derived: bool = False


class Batch(NamedTuple):
    """The records that one transaction has deleted."""

    deleted: Deleted
    changed: list[int]
    """Keys of records that somebody has changed since they were found."""
    rewritten: Mapping[int, tuple[int, int]]
    """The versions of records before and after the deletion itself has changed them, by key."""
    hides: bool
    """True if what was made of the records is still to be deleted, before the next batch."""


def names_few(where: Where) -> bool:
    """True if an index finds the records, which are few."""
    names = where.ids is not None or where.source_keys is not None
    return names and has_few_values(where) and not needs_python(where)


def found(db: sqlite3.Connection, asked: Asked, among: Collection[int] | None = None) -> Versions:
    """The records that satisfy the conditions.

    Args:
        among: The keys of those that are looked at; `None` for all.
    """
    with snapshot(db):
        owner = find(db, asked.scope)
        if owner is None:
            return {}
        sought = conditions(owner.id, asked.scope, asked.where, micros(asked.now), hides=owner.hides, shown=STAYING)
        if among is not None:
            sought.add("record.key IN (SELECT value FROM json_each(?))", json.dumps(list(among)))
        narrow(db, sought)
        return dict(db.execute(f"SELECT key, version FROM record WHERE {sought.sql}", sought.parameters).fetchall())


def delete_batch(db: sqlite3.Connection, asked: Asked, batch: Versions) -> Batch:
    """Delete those of the records that nobody has changed since they were found."""
    rows = rows_of(db, asked.scope)
    heads = rows.with_keys(list(batch))
    gone = [head for head in heads if head.version == batch[head.key]]
    deleted = deleting.delete_found(
        rows, asked.scope, gone, asked.now, forget=asked.forget, keeps_derived=asked.keeps_derived
    )
    changed = [head.key for head in heads if head.version != batch[head.key]]
    return Batch(deleted, changed, rows.rewritten, rows.hides)


class Deletion:
    """A deletion in batches."""

    def __init__(self, readers: Readers, asked: Asked) -> None:
        self._readers = readers
        self._asked = asked
        self._left: Versions = {}
        self._changed: list[int] | None = None
        self.deleted = Deleted(0)

    async def next(self) -> partial[Batch] | None:
        """The work of the next transaction; `None` at the end. The newest records are deleted first, because what was
        made of others is mostly newer than these."""
        if not self._left and self._changed != []:
            look = partial(found, asked=self._asked, among=self._changed)
            self._left, self._changed = await self._readers.run(look, of=[self._asked.scope]), []
        keys = sorted(self._left, reverse=True)[:MOST_DELETED]
        batch = {key: self._left.pop(key) for key in keys}
        return partial(delete_batch, asked=self._asked, batch=batch) if batch else None

    def note(self, done: Batch) -> None:
        """Note the work of a transaction; what it has changed itself need not be looked at again."""
        records, derived = self.deleted.records + done.deleted.records, self.deleted.derived + done.deleted.derived
        self.deleted = Deleted(records, derived)
        self._changed = [*(self._changed or ()), *done.changed]
        for key, (before, after) in done.rewritten.items():
            if self._left.get(key) == before:
                self._left[key] = after
