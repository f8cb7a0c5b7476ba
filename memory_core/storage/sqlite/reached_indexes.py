"""The indexes of the owners that a search reaches, and what its conditions leave of them.

Owners that are read together are joined for the search (`joined_index.py`), so a record ranks as if one owner had them
all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Scope
from memory_core.retrieval.joined_index import joined
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.matching_rows import MatchingRows, RowNumbers
from memory_core.storage.sqlite.owners import Owner
from memory_core.storage.sqlite.stale_index import StaleIndexError
from memory_core.storage.sqlite.where import owner_range
from memory_core.where.where import EVERYTHING, Where


class Part(NamedTuple):
    """The part that one owner contributes."""

    owner: Owner
    scope: Scope
    owner_index: OwnerIndex
    matching: MatchingRows


class ReachedIndexes:
    """The indexes of one or more owners, for one search in one read transaction."""

    def __init__(self, db: sqlite3.Connection, parts: Sequence[Part]) -> None:
        self._db = db
        self._parts = parts

    def joined(self, where: Where) -> OwnerIndex:
        """The indexes as one; with what was left, if conditions ask for that."""
        indexes = [part.owner_index for part in self._parts]
        return joined(indexes if where.left is False else [index.with_left() for index in indexes])

    def allowed(self, where: Where, left_out: Sequence[Where] = ()) -> RowNumbers | None:
        """The rows of `joined` that satisfy the conditions, ascending; `None` if they exclude no active record. See
        `MatchingRows.rows`.

        Args:
            left_out: Conditions of which none may be true; indexes answer each of them.
        """
        hides = any(part.owner.hides for part in self._parts)
        if not hides and not left_out and not _is_selective((part.scope for part in self._parts), where):
            return None
        found: list[RowNumbers] = []
        first = 0
        for part in self._parts:
            found.append(self._allowed(part, where, left_out) + np.int32(first))
            first += len(part.owner_index)
        return np.concatenate(found)

    def _allowed(self, part: Part, where: Where, left_out: Sequence[Where]) -> RowNumbers:
        owner, scope, owner_index, matching = part
        is_bounded = _is_selective([scope], where)
        rows = matching.rows(self._db, owner.id, scope, where) if is_bounded else _active(owner_index)
        for one in left_out:
            gone = matching.looked_up(self._db, owner.id, scope, one)
            rows = np.setdiff1d(rows, gone, assume_unique=True)
        if owner.hides:
            rows = np.setdiff1d(rows, _hidden(self._db, owner_index, owner.id), assume_unique=True)
        return rows

    def importances(self) -> NDArray[np.float32]:
        """The importance of each row of `joined`."""
        return np.concatenate([_importances(self._db, part.owner_index, part.owner.id) for part in self._parts])


def _is_selective(scopes: Iterable[Scope], where: Where) -> bool:
    """True if scopes and conditions exclude any active, unexpired record of their owners."""
    has_conditions = where is not EVERYTHING and where != EVERYTHING
    return has_conditions or any(scope.agent or scope.session or scope.collection for scope in scopes)


def _active(owner_index: OwnerIndex) -> RowNumbers:
    """The rows of active records."""
    return np.flatnonzero(owner_index.active.values).astype(np.int32)


def _hidden(db: sqlite3.Connection, owner_index: OwnerIndex, owner: int) -> RowNumbers:
    """The rows of hidden records."""
    keys = db.execute("SELECT key FROM hidden WHERE key BETWEEN ? AND ?", owner_range(owner)).fetchall()
    return np.array([owner_index.row_of[key] for (key,) in keys if key in owner_index.row_of], np.int32)


def _importances(db: sqlite3.Connection, owner_index: OwnerIndex, owner: int) -> NDArray[np.float32]:
    found = np.zeros(len(owner_index), np.float32)
    rows = db.execute("SELECT key, importance FROM record WHERE key BETWEEN ? AND ?", owner_range(owner))
    with explaining("the importance of a record"):
        for key, importance in rows:
            if (row := owner_index.row_of.get(key)) is None:
                raise StaleIndexError
            found[row] = importance
    return found
