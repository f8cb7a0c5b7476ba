"""Single adds of several callers as one write."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.models import MemoryRecord, Quota, Scope
from memory_core.storage.rules.adding import add
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.sqlite.owners import within
from memory_core.storage.sqlite.rows import rows_to_write


@dataclass(frozen=True, slots=True)
class Adds:
    """New records of one owner, one per caller, which the writer adds together if it can."""

    scope: Scope
    items: Sequence[Prepared]
    quota: Quota | None = None

    def __call__(self, db: sqlite3.Connection) -> list[MemoryRecord | None]:
        return within(self.quota, self.scope, self._added)(db)

    def _added(self, db: sqlite3.Connection) -> list[MemoryRecord | None]:
        return add(rows_to_write(db, self.scope), self.scope, self.items)

    def apart(self) -> list[Adds]:
        """The same adds, one object per caller."""
        return [Adds(self.scope, [item], self.quota) for item in self.items]
