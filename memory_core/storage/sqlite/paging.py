"""Pages of records, in their order."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from memory_core.concurrency.threads import yield_now
from memory_core.models import MemoryRecord, Order, Page, Scope
from memory_core.requests import ListRequest
from memory_core.storage.shared.cursors import decode_cursor, encode_cursor
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.owners import Owner, find
from memory_core.storage.sqlite.readers import Readers, is_long_page, looks_long
from memory_core.storage.sqlite.row_filter import RowFilter, narrow
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import Conditions, conditions, needs_python

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


class Part(NamedTuple):
    """A page, without the records that changed while it was read."""

    records: tuple[MemoryRecord, ...]
    keys: list[int]
    end: Position | None
    """The next page starts after this position; `None` on the last page."""


class PageFilter(NamedTuple):
    """A filter over the records in the order of a page; it stops when the page is full."""

    row_filter: RowFilter
    keys: list[int]
    values: list[str]
    """The values of the order's column, as SQL literals, one for each key."""

    @property
    def end(self) -> Position | None:
        """The position at which the filter stopped; `None` if it tested all records."""
        seen = self.row_filter.seen
        if seen == len(self.keys):
            return None
        value = self.values[seen - 1]
        return float(value) if "." in value else int(value), self.keys[seen - 1]


Read = Callable[[sqlite3.Connection], Part]
ReadBy = Callable[[Read], Awaitable[Part]]


async def page(readers: Readers, scope: Scope, request: ListRequest, now: int, read_by: ReadBy | None = None) -> Page:
    """Read one page.

    Args:
        read_by: Reads the records of the page; `None` to use a connection of `readers`.
    """

    async def by_reader(read: Read) -> Part:
        return await readers.run(partial(_of_one_state, read), unless=lambda db: is_long_page(find(db, scope), request))

    while True:
        passed = await _run_page_filter(readers, scope, request, now)
        found = await (read_by or by_reader)(lambda db: part(db, scope, request, now, passed))  # noqa: B023
        cursor = None if found.end is None else encode_cursor(request.order, *found.end)
        if found.records or cursor is None:
            return Page(found.records, cursor)
        request = replace(request, cursor=cursor)  # every record that passed the filter changed before it was read


def _of_one_state(read: Read, db: sqlite3.Connection) -> Part:
    with snapshot(db):
        return read(db)


def part(db: sqlite3.Connection, scope: Scope, request: ListRequest, now: int, passed: PageFilter | None) -> Part:
    """Read the records of a page, inside a transaction."""
    column, sign, _ = _ORDERS[request.order]
    after = _after(request)  # a bad cursor is refused even if there is no owner
    owner = find(db, scope)
    if owner is None:
        return Part((), [], None)
    found = _conditions(owner, scope, request, now, after)
    narrow(db, found, passed and passed.row_filter)
    end = None if passed is None else passed.end
    if end is not None:  # a record that has moved behind it since then belongs to a later page
        found.add(f"NOT ({column}, key) {sign} (?, ?)", *end)
    rows = db.execute(
        f"SELECT {COLUMNS}, {column}, key FROM record WHERE {found.sql} {_in_order(request)} LIMIT ?",
        [*found.parameters, request.limit + 1],
    ).fetchall()
    shown = rows[: request.limit]
    records: list[MemoryRecord] = []
    for at in range(0, len(shown), _AT_ONCE):
        records += [to_record(row, scope.app, scope.user or "") for row in shown[at : at + _AT_ONCE]]
        yield_now()
    return Part(tuple(records), [row[-1] for row in shown], shown[-1][-2:] if len(rows) > len(shown) else end)


async def _run_page_filter(readers: Readers, scope: Scope, request: ListRequest, now: int) -> PageFilter | None:
    if not needs_python(request.where):
        return None

    after = _after(request)

    def begin(db: sqlite3.Connection) -> PageFilter | None:
        with snapshot(db):
            owner = find(db, scope)
            return (
                None if owner is None else _new_page_filter(db, _conditions(owner, scope, request, now, after), request)
            )

    passed = await readers.run(begin, unless=lambda db: looks_long(find(db, scope), request.where))
    if passed is not None:
        await readers.run_filter(passed.row_filter)
    return passed


def _new_page_filter(db: sqlite3.Connection, found: Conditions, request: ListRequest) -> PageFilter:
    keys, values = db.execute(  # in one row, because many rows would be slow
        "SELECT json_group_array(key), json_group_array(quote(value)) FROM "
        f"(SELECT key, {_ORDERS[request.order][0]} AS value FROM record WHERE {found.sql} "
        f"{_in_order(request)} LIMIT -1)",
        found.parameters,
    ).fetchone()
    listed: list[int] = json.loads(keys)
    return PageFilter(RowFilter.for_conditions(found, listed, request.limit + 1), listed, json.loads(values))


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
    # A plus keeps SQLite from walking the owner in order when it can look up the few records that are named.
    named = request.where.ids is not None or request.where.source_keys is not None or bool(request.where.links)
    return f"ORDER BY {'+' if named else ''}{column} {direction}, key {direction}"
