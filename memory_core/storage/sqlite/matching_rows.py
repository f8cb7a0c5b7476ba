"""Find the rows of an owner index that satisfy the conditions of a search, and cache the result.

SQL is run once for all rows and later for new rows only: a record that changes gets a new row in its owner index
(`OwnerIndexes`), so cached results of older rows stay valid.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Hashable
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Scope
from memory_core.retrieval.owner_index import OwnerIndex
from memory_core.storage.sqlite.row_filter import matching_keys
from memory_core.storage.sqlite.stale_index import StaleIndexError
from memory_core.storage.sqlite.where import Conditions, conditions
from memory_core.where.meaning import names_any
from memory_core.where.where import Where

RowNumbers = NDArray[np.int32]

KEPT_BYTES: Final = 4 * 1024 * 1024
"""Most bytes of cached results for one owner. Agents and graphs search with the same conditions repeatedly."""
_ANSWER_BYTES: Final = 1_024
"""Approximate bytes of a result without rows."""
READ_FIELDS: Final = ("accessed_at", "access_count")
"""Fields that a read changes without creating a new row."""
_ALWAYS: Final = -1
"""A time before every expiry; the ranking leaves out records that have expired."""


class _Result(NamedTuple):
    rows: RowNumbers
    size: int
    """Number of rows of the owner index when the result was computed."""

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + _ANSWER_BYTES


_NO_RESULT: Final = _Result(np.empty(0, np.int32), 0)


class MatchingRows:
    """The rows of one owner index by condition, with a cache of recent results."""

    def __init__(self, owner_index: OwnerIndex) -> None:
        self._owner_index = owner_index
        self._results: OrderedDict[bytes, _Result] = OrderedDict()
        """By a digest of the conditions, which may have megabytes of ids."""
        self.nbytes = 0

    def rows(self, db: sqlite3.Connection, owner: int, scope: Scope, where: Where) -> RowNumbers:
        """The matching rows, ascending; deleted and expired rows may be among them."""
        found = conditions(owner, scope, where, _ALWAYS)
        name, is_kept = _digest(found.name), not names_any(where.matching or (), READ_FIELDS)
        result = (self._results.get(name) if is_kept else None) or _NO_RESULT
        if result.size < len(self._owner_index):
            result = _Result(np.concatenate([result.rows, self._since(db, found, result.size)]), len(self._owner_index))
        if is_kept:
            self._keep(name, result)
        return result.rows

    def looked_up(self, db: sqlite3.Connection, owner: int, scope: Scope, where: Where) -> RowNumbers:
        """The rows of records that an index finds, in any order. They are not cached."""
        found, row_of = conditions(owner, scope, where, _ALWAYS), self._owner_index.row_of
        return np.array([row_of[key] for key in matching_keys(db, found) if key in row_of], np.int32)

    def _keep(self, name: bytes, result: _Result) -> None:
        self._drop(name)
        self._results[name] = result
        self.nbytes += result.nbytes
        while self.nbytes > KEPT_BYTES and len(self._results) > 1:
            self._drop(next(iter(self._results)))

    def _drop(self, name: bytes) -> None:
        older = self._results.pop(name, None)
        self.nbytes -= 0 if older is None else older.nbytes

    def _since(self, db: sqlite3.Connection, found: Conditions, first: int) -> RowNumbers:
        """The matching rows from `first` on.

        Raises:
            StaleIndexError: The index lacks a record that matches.
        """
        if first:
            newer = self._owner_index.keys.values[first:].tolist()
            found.add("record.key IN (SELECT value FROM json_each(?))", json.dumps(newer))
        keys = matching_keys(db, found)
        row_of = self._owner_index.row_of
        if not row_of.keys() >= set(keys):
            raise StaleIndexError
        return np.sort(np.array([row_of[key] for key in keys], np.int32))


def _digest(name: Hashable) -> bytes:
    return blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=16).digest()
