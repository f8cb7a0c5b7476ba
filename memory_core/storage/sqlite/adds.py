"""Single adds of several callers as one write."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_core.models import MemoryRecord, Quota, Scope
from memory_core.storage.rules.adding import add
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.sqlite.owners import within
from memory_core.storage.sqlite.rows import rows_to_add


@dataclass(frozen=True, slots=True)
class Adds:
    """New records of one owner, one per caller, which the writer adds together if it can."""

    scope: Scope
    items: Sequence[Prepared]
    quota: Quota | None = None

    def __call__(self, db: sqlite3.Connection) -> list[MemoryRecord | None]:
        return within(self.quota, self.scope, lambda db: insert(db, self.scope, self.items))(db)

    def apart(self) -> list[Adds]:
        """The same adds, one object per caller."""
        return [Adds(self.scope, [item], self.quota) for item in self.items]


def insert(
    db: sqlite3.Connection, scope: Scope, items: Sequence[Prepared], versions: Mapping[str, int] | None = None
) -> list[MemoryRecord | None]:
    """See `Records.add`."""
    return add(rows_to_add(db, scope, items), scope, items, versions)
