"""Reads without ranking: pages of records, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from memory_core.errors import RecordNotFoundError
from memory_core.models import EMPTY_STATS, STATES, Component, Hit, Known, MemoryRecord, Order, Page, Stats
from memory_core.requests import ListRequest, SearchRequest
from memory_core.retrieval.passages import best_passage
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import PENDING, FoundPoint, Stored, stamp, to_row, to_stored
from memory_core.storage.qdrant.owners import Owner, matching, reachable
from memory_core.storage.qdrant.points import MAX_POINTS, PAGE, Points, by
from memory_core.storage.qdrant.superseding import resolved
from memory_core.storage.qdrant.where import Clause, among, ordered, ranged, same
from memory_core.storage.shared.cursors import decode_cursor, encode_cursor, not_a_cursor
from memory_core.where.meaning import folded
from memory_core.where.where import ANY_STATE, Where

_ORDERS: Final[dict[Order, tuple[str, bool]]] = {
    "newest": ("occurred_at", True),
    "oldest": ("occurred_at", False),
    "importance": ("importance", True),
    "accessed": ("_seen_at", True),
}
"""Field, and whether it descends. Ties are ordered by arrival in the same direction."""

_COUNTED: Final = [
    "kind",
    "tier",
    "state",
    "left",
    "session",
    "occurred_at",
    "importance",
    "confidence",
    "_keys",
    "_row",
]


_KNOWN: Final = ["source_key", "id", "rev", "version", "state", "left", "_row", "_closing"]
"""The fields of `Known`, in its order, and what else `known` needs."""


class _Place(NamedTuple):
    """The place of a record in a listing."""

    value: float | str
    """Of the field by which it is ordered, as it is stored: a number, or a time by `codec.stamp`, which sorts alike."""
    seq: int
    point: str


async def page(owners: Sequence[Owner], request: ListRequest, now: datetime) -> tuple[Page, list[Stored]]:
    """One page, and its records with the store's own fields."""
    after = None if request.cursor is None else _decode(request.cursor, request.order)
    rows = await _rows(owners[0].points, await reachable(owners, request.where, now), request, after)
    shown = rows[: request.limit]
    stored = await resolved(owners, [to_stored(row) for row in shown], request.where.states, request.where.left)
    cursor = None
    if len(rows) > len(shown):
        cursor = encode_cursor(request.order, *_place(shown[-1], _ORDERS[request.order][0]))
    return Page(tuple(item.record for item in stored), cursor), stored


async def containing(owners: Sequence[Owner], request: SearchRequest, now: datetime) -> list[Hit]:
    """Records whose text contains the query, ignoring case; newest first. Reads every record until enough are found."""
    needle, hits = folded(request.text), list[Hit]()
    reason = {"substring": Component(1.0, 1.0)} if request.explain else None
    wanted = ListRequest(where=request.where, order="newest", limit=PAGE, cursor=None, touch=False)
    while needle.strip():
        found, stored = await page(owners, wanted, now)
        for item in stored:
            text = item.record.text
            if needle in folded(text):
                part = best_passage(text, item.spans, [needle], None, reach=len(needle) - 1)
                hits.append(Hit(item.record, 1.0, None, reason, part))
        if found.cursor is None or len(hits) >= request.limit:
            break
        wanted = replace(wanted, cursor=found.cursor)
    return hits[: request.limit]


async def one(owner: Owner, id: str, now: datetime) -> Stored | None:  # noqa: A002
    """The record with an id, in any state, if it is in reach."""
    found = await resolved([owner], await matching(owner, replace(ANY_STATE, ids=(id,)), now), STATES)
    return found[0] if found else None


async def existing(owner: Owner, id: str, now: datetime) -> Stored:  # noqa: A002
    """The same, or `RecordNotFoundError`."""
    known = await one(owner, id, now)
    if known is None:
        raise RecordNotFoundError(f"there is no memory {id!r}")
    return known


async def known(owner: Owner, keys: Sequence[str] | None, now: datetime) -> list[Known]:
    """See `LeanReads.known`. What another record is about to supersede is read whole, to be seen as by other reads."""
    reach = await reachable([owner], replace(ANY_STATE, source_keys=keys), now)
    found = await owner.points.all(*reach, same("_keys", "source_key"), fields=_KNOWN)
    claimed = [row.id for row in found if row.payload.get("_closing") is not None]
    whole = [to_stored(row) for row in await owner.points.read(claimed)] if claimed else []
    closed = {item.point: Known.of(item.record) for item in await resolved([owner], whole, STATES)}
    found.sort(key=lambda row: (to_row(row.payload).occurred_at, to_row(row.payload).seq, row.id))
    return [closed.get(row.id) or Known(*(row.payload[name] for name in _KNOWN[: len(Known._fields)])) for row in found]


async def touch(owner: Owner, stored: Sequence[Stored], now: datetime) -> tuple[MemoryRecord, ...]:
    """Count a read, and return the records with their new counts. A request sent twice counts once: a count is set
    only if the last read is still the one that was read."""
    points, read = owner.points, list[MemoryRecord]()
    for some in by(MAX_POINTS, stored):
        operations: list[models.UpdateOperation] = []
        for item in some:
            record = replace(item.record, accessed_at=now, access_count=item.record.access_count + 1)
            fields = {"accessed_at": stamp(now), "_seen_at": stamp(now), "access_count": record.access_count}
            seen = item.record.accessed_at or item.record.created_at
            unchanged = ranged("_seen_at", gte=seen, lte=seen), same("_write", item.write)
            operations.append(points.set_fields(fields, among([item.point]), *unchanged))
            read.append(record)
        await points.write(*operations)
    return tuple(read)


async def collections(owner: Owner, where: Where, now: datetime) -> list[str]:
    """The distinct collections of the records that satisfy `where`, sorted by code points."""
    found = await reachable([owner], where, now)
    records = await owner.points.all(*found, same("_keys", "collection"), fields=["collection"])
    return sorted({record.payload["collection"] for record in records})


async def count(owner: Owner, where: Where, now: datetime, *, has_embedder: bool) -> Stats:
    """Count the records that satisfy `where` by reading a few fields of each, because servers do not aggregate.
    Without an embedder no vectors are pending."""
    reach = await reachable([owner], where, now)
    payloads = [record.payload for record in await owner.points.all(*reach, fields=_COUNTED)]
    if not payloads:
        return EMPTY_STATS
    moments = [datetime.fromisoformat(item["occurred_at"]) for item in payloads]
    return Stats(
        records=len(payloads),
        by_kind=Counter(item["kind"] for item in payloads),
        by_tier=Counter(item["tier"] for item in payloads),
        by_state=Counter(item["state"] for item in payloads),
        left=sum(item["left"] for item in payloads),
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
) -> list[FoundPoint]:
    """The records of a page in order, and one more if there is one.

    A server orders by one field and leaves ties unordered, so ties are fetched separately, in order of arrival: first
    the rest of the ties at the end of the previous page, last those at the end of this page.
    """
    field, descending = _ORDERS[request.order]
    place = partial(_place, field=field)

    async def fetch(by: str, limit: int, *bounds: Clause) -> list[FoundPoint]:
        wanted = ordered([*where, *bounds], by, limit, descending=descending)
        return sorted((await points.query([wanted]))[0], key=place, reverse=descending)

    async def tied(value: float | str, limit: int) -> list[FoundPoint]:
        edge, bounds = _bound(value), list[Clause]()
        if after is not None and value == after.value:
            bounds.append(ranged("_seq", **{"lte" if descending else "gte": after.seq}))
        # Writes in the same microsecond have the same arrival: fetch a few more, and skip those up to the position.
        found = await fetch("_seq", limit + 8, ranged(field, gte=edge, lte=edge), *bounds)
        if after is not None:
            found = [row for row in found if (place(row) < after if descending else place(row) > after)]
        return found[:limit]

    missing, rows, rest = request.limit + 1, list[FoundPoint](), list[Clause]()
    if after is not None:
        rows = await tied(after.value, missing)
        missing -= len(rows)
        rest = [ranged(field, **{"lt" if descending else "gt": _bound(after.value)})]
    more = await fetch(field, missing, *rest) if missing else []
    if not more or len(more) < missing:
        return rows + more
    last = place(more[-1]).value
    more = [row for row in more if place(row).value != last]
    return rows + more + await tied(last, missing - len(more))


def _place(row: FoundPoint, field: str) -> _Place:
    return _Place(row.payload[field], to_row(row.payload).seq, row.id)


def _bound(value: float | str) -> float | datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _decode(cursor: object, order: Order) -> _Place:
    place = _Place(*decode_cursor(cursor, order, (float if order == "importance" else str, int, str)))
    try:
        _bound(place.value)
    except ValueError as cause:
        raise not_a_cursor(cursor, order) from cause
    return place
