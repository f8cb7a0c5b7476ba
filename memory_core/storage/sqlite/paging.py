"""Pages of records, in their order."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any, Final

from memory_core.concurrency.threads import yield_now
from memory_core.models import MemoryRecord, Order, Page, Scope
from memory_core.requests import ListRequest
from memory_core.storage.shared.cursors import decode_cursor, encode_cursor
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.owners import Owner, find
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.row_filter import narrow
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import Conditions, conditions, needs_python
from memory_core.where.conditions import FieldCondition

_AT_ONCE: Final = 16
"""Records that are decoded before other work may go first."""
_ORDERS: Final[dict[Order, tuple[str, str, str]]] = {
    "newest": ("occurred_at", "<", "DESC"),
    "oldest": ("occurred_at", ">", "ASC"),
    "importance": ("importance", "<", "DESC"),
    "accessed": ("coalesce(accessed_at, created_at)", "<", "DESC"),
}
"""Column, operator that selects what follows the last record, direction. Ties are ordered by key, the same way."""

Position = tuple[Any, ...]
"""The position of a record in an order: the value of the column, and the key."""


async def read(readers: Readers, scope: Scope, request: ListRequest, now: int) -> Page:
    """Read one page when it is its turn."""
    work = partial(page, scope=scope, request=request, now=now)
    is_small = request.limit <= _AT_ONCE and not needs_python(request.where)
    found = await readers.briefly(work, of=[scope]) if is_small else None
    return await readers.run(work, of=[scope]) if found is None else found


def page(db: sqlite3.Connection, scope: Scope, request: ListRequest, now: int) -> Page:
    """Read one page."""
    column, order = _ORDERS[request.order][0], _in_order(request)
    after = _after(request)  # a bad cursor is refused even if there is no owner
    with snapshot(db):
        owner = find(db, scope)
        if owner is None:
            return Page((), None)
        found = _conditions(owner, scope, request, now, after)
        narrow(db, found, order, request.limit + 1)
        rows = db.execute(
            f"SELECT {COLUMNS}, {column}, key FROM record WHERE {found.sql} {order} LIMIT ?",
            [*found.parameters, request.limit + 1],
        ).fetchall()
    shown = rows[: request.limit]
    records: list[MemoryRecord] = []
    for at in range(0, len(shown), _AT_ONCE):
        records += [to_record(row, scope.app, scope.user or "") for row in shown[at : at + _AT_ONCE]]
        yield_now()
    return Page(tuple(records), encode_cursor(request.order, *shown[-1][-2:]) if len(rows) > len(shown) else None)


def _after(request: ListRequest) -> Position | None:
    return None if request.cursor is None else decode_cursor(request.cursor, request.order, (float, int))


def _conditions(owner: Owner, scope: Scope, request: ListRequest, now: int, after: Position | None) -> Conditions:
    column, sign, _ = _ORDERS[request.order]
    found = conditions(owner.id, scope, request.where, now, hides=owner.hides)
    if after is not None:
        found.add(f"({column}, key) {sign} (?, ?)", *after)
    return found


def _in_order(request: ListRequest) -> str:
    column, _, direction = _ORDERS[request.order]
    # A plus keeps SQLite from walking the owner in order when it can look up the records that are named, or sessions.
    where = request.where
    named = where.ids is not None or where.source_keys is not None or bool(where.links)
    named = named or any(
        isinstance(one, FieldCondition) and (one.field, one.op) == ("session", "in") for one in where.matching or ()
    )
    return f"ORDER BY {'+' if named else ''}{column} {direction}, key {direction}"
