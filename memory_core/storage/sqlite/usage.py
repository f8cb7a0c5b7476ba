"""Measure how much an owner stores, and refuse writes beyond its quota."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from memory_core.encoding import encode_json
from memory_core.errors import QuotaExceededError
from memory_core.models import MemoryRecord, Quota, Scope
from memory_core.storage.shared.values import link_keys

T = TypeVar("T")

SIZE: Final = "(length(CAST(text AS BLOB)) + length(data) + length(tags) + length(links))"
"""The bytes of user content in a row of `record`. All columns but `text` are ASCII."""

_PAIR: Final = 2
"""The bytes of `{}` and `[]`."""
_EMPTY: Final = 3 * _PAIR
"""The bytes of a record without content."""


class Usage(NamedTuple):
    """What an owner stores, or a change of it."""

    records: int = 0
    bytes: int = 0


UNCHANGED: Final = Usage()


def usage_of(records: Iterable[MemoryRecord]) -> Usage:
    """The usage of some records, with bytes as in `SIZE`."""
    count = size = 0
    for record in records:
        count += 1
        size += _size(record)
    return Usage(count, size)


def used(db: sqlite3.Connection, scope: Scope) -> Usage:
    """The usage of a scope's owner."""
    row = db.execute("SELECT records, bytes FROM owner WHERE app = ? AND user = ?", (scope.app, scope.user)).fetchone()
    return Usage(*row) if row else Usage()


def within(
    quota: Quota | None, scope: Scope, work: Callable[[sqlite3.Connection], T]
) -> Callable[[sqlite3.Connection], T]:
    """Wrap `work` so that it raises, and is rolled back, if it takes the owner's usage further beyond the quota."""
    if quota is None:
        return work

    def guarded(db: sqlite3.Connection) -> T:
        before = used(db, scope)
        result = work(db)
        _check_quota(quota, scope, before, used(db, scope))
        return result

    return guarded


def _check_quota(quota: Quota, scope: Scope, before: Usage, after: Usage) -> None:
    for unit, most, held, wanted in (
        ("records", quota.records, before.records, after.records),
        ("bytes", quota.bytes, before.bytes, after.bytes),
    ):
        if most is not None and wanted > most and wanted > held:
            raise QuotaExceededError(
                f"{scope.app}/{scope.user} holds {held:,} of {most:,} {unit} and would hold {wanted:,}; delete some "
                "memories, or open the memory with a larger Quota"
            )


def _size(record: MemoryRecord) -> int:
    text = record.text
    size = _EMPTY + (len(text) if text.isascii() else len(text.encode()))
    if record.data:
        size += len(encode_json(record.data)) - _PAIR
    if record.tags:
        size += len(encode_json(record.tags)) - _PAIR
    if record.links:
        size += len(encode_json(link_keys(record.links))) - _PAIR
    return size
