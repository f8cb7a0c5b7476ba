"""Reads without ranking: pages of records, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from memory_core.errors import RecordNotFoundError
from memory_core.models import EMPTY_STATS, MemoryRecord, Order, Page, Scope, Stats
from memory_core.protocols import ListRequest
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import PENDING, STORED_FIELDS, Stored, digest_of, stamp, to_row, to_stored
from memory_core.storage.qdrant.collection import Points, by
from memory_core.storage.qdrant.owners import Owner
from memory_core.storage.qdrant.reach import reachable
from memory_core.storage.qdrant.succession import resolved
from memory_core.storage.qdrant.where import (
    EVERYTHING,
    Clause,
    all_of,
    among,
    between,
    beyond,
    conditions,
    keyed,
    owned,
    same,
)
from memory_core.storage.shared.cursors import decode_cursor, encode_cursor, not_a_cursor
from memory_core.storage.shared.values import micros, moment
from memory_core.where.value import Where

_ORDERS: Final[dict[Order, tuple[str, bool]]] = {
    "newest": ("occurred_at", True),
    "oldest": ("occurred_at", False),
    "importance": ("importance", True),
    "accessed": ("_seen_at", True),
}
"""Field, and whether it descends. Ties are ordered by arrival in the same direction."""

_COUNTED: Final = ["kind", "tier", "state", "session", "occurred_at", "importance", "confidence", "_keys", "_row"]
TOUCHED: Final = 100
"""How many reads are counted in one request."""

Value = float | datetime


@dataclass(frozen=True, slots=True)
class _Place:
    """The end of a page: by the order of its listing, then by arrival."""

    value: Value
    seq: int
    point: str


async def page(owner: Owner, scope: Scope, request: ListRequest, now: datetime) -> tuple[Page, list[Stored]]:
    """One page, and its records with the store's own fields."""
    after = None if request.cursor is None else _decode(request.cursor, request.order)
    where = await reachable(owner, scope, request.where, now)
    rows = [] if where is None else await _rows(owner.points, where, request, after)
    shown = rows[: request.limit]
    stored = await resolved(owner, [to_stored(row.id, row.payload) for row in shown])
    stored = [item for item in stored if item.closing is None or item.record.state in request.where.states]
    cursor = None
    if len(rows) > len(shown):
        field, _ = _ORDERS[request.order]
        cursor = _encode(request.order, _place(shown[-1], field))
    return Page(tuple(item.record for item in stored), cursor), stored


async def one(owner: Owner, scope: Scope, id: str, now: datetime) -> Stored | None:  # noqa: A002
    """The record with an id, in any state, if it is in scope."""
    found = await owner.points.all(all_of(owned(owner.key), keyed("id", id)), fields=STORED_FIELDS)
    if not found:
        return None
    (stored,) = await resolved(owner, [to_stored(found[0].id, found[0].payload)])
    record = stored.record
    if record.expires_at is not None and record.expires_at <= now:
        return None
    bound = [(getattr(scope, name), getattr(record, name)) for name in ("agent", "session", "collection")]
    return stored if all(wanted is None or wanted == actual for wanted, actual in bound) else None


async def existing(owner: Owner, scope: Scope, id: str, now: datetime) -> Stored:  # noqa: A002
    """The same, or `RecordNotFoundError`."""
    known = await one(owner, scope, id, now)
    if known is None:
        raise RecordNotFoundError(f"there is no memory {id!r}")
    return known


async def touch(points: Points, stored: Sequence[Stored], now: datetime) -> tuple[MemoryRecord, ...]:
    """Count a read, and return the records with their new counts.

    A count is set only if the last read is still the one that was read: a request sent twice counts once.
    """
    read = [
        replace(item, record=replace(item.record, accessed_at=now, access_count=item.record.access_count + 1))
        for item in stored
    ]
    for some in by(TOUCHED, list(zip(stored, read, strict=True))):
        await points.write(*(_counting(points, item, after, now) for item, after in some))
    return tuple(item.record for item in read)


def _counting(points: Points, item: Stored, after: Stored, now: datetime) -> models.SetPayloadOperation:
    seen = item.record.accessed_at or item.record.created_at
    fields = {
        "accessed_at": stamp(now),
        "_seen_at": stamp(now),
        "access_count": after.record.access_count,
        "_digest": digest_of(after),
    }
    unchanged = between("_seen_at", seen, seen)
    return points.set_fields(fields, all_of(among([item.point]), unchanged, same("_write", item.write)))


async def collections(owner: Owner, scope: Scope, where: Where, now: datetime) -> list[str]:
    """The distinct collections of the records that satisfy `where`, sorted by code points."""
    found = await reachable(owner, scope, where, now)
    if found is None:
        return []
    pages = owner.points.pages(all_of(*found, same("_keys", "collection")), fields=["collection"])
    return sorted({(record.payload or {})["collection"] async for page in pages for record in page})


async def count(owner: Owner, scope: Scope, now: datetime, *, has_embedder: bool) -> Stats:
    """Count the records in a scope by reading a few fields of each, because servers do not aggregate.

    Args:
        has_embedder: Whether there is an embedder, so that vectors can be pending.
    """
    found = conditions(owner.key, scope, EVERYTHING, now) or []
    pages = owner.points.pages(all_of(*found), fields=_COUNTED)
    payloads = [record.payload or {} async for some in pages for record in some]
    if not payloads:
        return EMPTY_STATS
    moments = [datetime.fromisoformat(item["occurred_at"]) for item in payloads]
    return Stats(
        records=len(payloads),
        by_kind=Counter(item["kind"] for item in payloads),
        by_tier=Counter(item["tier"] for item in payloads),
        by_state=Counter(item["state"] for item in payloads),
        sessions=len({item["session"] for item in payloads if item.get("session") is not None}),
        oldest=min(moments),
        newest=max(moments),
        average_importance=sum(item["importance"] for item in payloads) / len(payloads),
        average_confidence=sum(item["confidence"] for item in payloads) / len(payloads),
        vectors_pending=sum(to_row(item).pieces for item in payloads if has_embedder and PENDING in item["_keys"]),
        bytes=None,
    )


async def _rows(
    points: Points, where: Sequence[Clause], request: ListRequest, after: _Place | None
) -> list[models.ScoredPoint]:
    """The records of a page in order, and one more if there is one.

    A server orders by one field and leaves ties unordered, so ties are fetched separately, in order of arrival: first
    the rest of the ties at the end of the previous page, last those at the end of this page.
    """
    field, descending = _ORDERS[request.order]
    wanted = request.limit + 1
    rows: list[models.ScoredPoint] = []
    if after is not None:
        rows = await _tied(points, where, field, after.value, descending=descending, limit=wanted, after=after)
        where = [*where, beyond(field, after.value, descending=descending)]
    if len(rows) >= wanted:
        return rows[:wanted]
    missing = wanted - len(rows)
    more = await _ordered(points, where, field, descending=descending, limit=missing)
    if len(more) == missing:
        last = _place(more[-1], field).value
        more = [row for row in more if _place(row, field).value != last]
        limit = missing - len(more)
        ties = await _tied(points, where, field, last, descending=descending, limit=limit, after=None)
        return rows + _sorted(more, field, descending=descending) + ties[:limit]
    return rows + _sorted(more, field, descending=descending)


async def _tied(
    points: Points,
    where: Sequence[Clause],
    field: str,
    value: Value,
    *,
    descending: bool,
    limit: int,
    after: _Place | None,
) -> list[models.ScoredPoint]:
    """Records with one value, by arrival, after a position."""
    here = [*where, between(field, value, value)]
    if after is not None:
        bounds = (None, after.seq) if descending else (after.seq, None)
        here.append(between("_seq", *bounds))
    # Writes in the same microsecond have the same arrival: fetch a few more, and skip those up to the position.
    rows = await _ordered(points, here, "_seq", descending=descending, limit=limit + 8)
    rows = _sorted(rows, field, descending=descending)
    if after is not None:
        edge = (after.seq, after.point)
        rows = [row for row in rows if (_key(row) < edge if descending else _key(row) > edge)]
    return rows


async def _ordered(
    points: Points, where: Sequence[Clause], field: str, *, descending: bool, limit: int
) -> list[models.ScoredPoint]:
    direction = models.Direction.DESC if descending else models.Direction.ASC
    request = models.QueryRequest(
        query=models.OrderByQuery(order_by=models.OrderBy(key=field, direction=direction)),
        filter=all_of(*where),
        limit=limit,
        with_payload=list(STORED_FIELDS),
    )
    return (await points.query([request]))[0]


def _sorted(rows: Sequence[models.ScoredPoint], field: str, *, descending: bool) -> list[models.ScoredPoint]:
    return sorted(rows, key=lambda row: (_place(row, field).value, *_key(row)), reverse=descending)


def _key(row: models.ScoredPoint) -> tuple[int, str]:
    return to_row(row.payload or {}).seq, str(row.id)


def _place(row: models.ScoredPoint, field: str) -> _Place:
    payload: dict[str, Any] = row.payload or {}
    value = (payload.get("accessed_at") or payload["created_at"]) if field == "_seen_at" else payload[field]
    return _Place(datetime.fromisoformat(value) if isinstance(value, str) else float(value), *_key(row))


def _encode(order: Order, place: _Place) -> str:
    value = micros(place.value) if isinstance(place.value, datetime) else place.value
    return encode_cursor(order, value, place.seq, place.point)


def _decode(cursor: object, order: Order) -> _Place:
    value, seq, point = decode_cursor(cursor, order, (float, int, str))
    if _ORDERS[order][0] == "importance":
        return _Place(float(value), seq, point)
    try:
        return _Place(moment(int(value)), seq, point)
    except OverflowError as cause:
        raise not_a_cursor(cursor, order) from cause
