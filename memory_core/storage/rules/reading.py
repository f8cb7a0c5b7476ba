"""The meaning of a search and of a page, for a store that reads all records of an owner: a beginning, and the oracle of
a test.

Both walk over every record of the owner, and a search analyses them again. A store of many records keeps the terms
(`Prepared.features`), and lets its database decide conditions and order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np

from memory_core.chunking import DEFAULT_CHUNKER, pieces_of
from memory_core.errors import InvalidInputError
from memory_core.models import Component, Hit, MemoryRecord, Order, Page, Scope
from memory_core.records.kinds import is_message
from memory_core.requests import ListRequest, SearchRequest
from memory_core.retrieval.features import features, role_flag
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.passages import best_passage
from memory_core.retrieval.question import parse
from memory_core.retrieval.ranking import rank
from memory_core.storage.rules.rows import Row, Rows
from memory_core.storage.shared.cursors import decode_cursor, encode_cursor
from memory_core.storage.shared.merging import reaches
from memory_core.storage.shared.stored_forms import micros
from memory_core.values.times import offset_of
from memory_core.where.meaning import folded, satisfies
from memory_core.where.where import Where

_PLACES: Final[Mapping[Order, Callable[[MemoryRecord], float]]] = {
    "newest": lambda record: micros(record.occurred_at),
    "oldest": lambda record: micros(record.occurred_at),
    "importance": lambda record: record.importance,
    "accessed": lambda record: micros(record.accessed_at or record.created_at),
}


def matching(rows: Sequence[Row], scope: Scope, where: Where, now: datetime) -> list[Row]:
    """The rows of an owner that are in scope and satisfy the conditions, in the order given."""
    return [row for row in rows if reaches(scope, row.record) and satisfies(row.record, where, now)]


def page(rows: Sequence[Row], scope: Scope, request: ListRequest, now: datetime) -> Page:
    """Records that satisfy the request, without ranking; counting the read is left to the store (`touch`).

    Args:
        rows: All of the owner's, in any order.
    """
    place, ascending = _PLACES[request.order], request.order == "oldest"
    after = None if request.cursor is None else decode_cursor(request.cursor, request.order, (float, int))
    found = [(place(row.record), row.key, row.record) for row in matching(rows, scope, request.where, now)]
    found.sort(key=lambda each: each[:2], reverse=not ascending)
    rest = [each for each in found if after is None or (each[:2] > after if ascending else each[:2] < after)]
    shown = rest[: request.limit]
    cursor = encode_cursor(request.order, *shown[-1][:2]) if len(rest) > len(shown) else None
    return Page(tuple(record for *_, record in shown), cursor)


def touch(rows: Rows, records: Sequence[MemoryRecord], now: datetime) -> list[MemoryRecord]:
    """Count a read of these records, and return them as they are now."""
    stored = {row.record.id: row for row in rows.with_ids([record.id for record in records])}
    read = [replace(one, accessed_at=now, access_count=one.access_count + 1) for one in records]
    rows.overwrite([(stored[record.id], record) for record in read])
    return read


def search(owners: Sequence[tuple[Scope, Sequence[Row]]], request: SearchRequest, now: datetime) -> list[Hit]:
    """The best hits, best first; by words alone, without vectors.

    Args:
        owners: One scope or several of different owners, each with all rows of its owner in order of arrival. Several
            are ranked as if one owner had all the records.

    Raises:
        InvalidInputError: The mode is `vector`.
    """
    if request.mode == "vector":
        raise InvalidInputError(
            "this store always has embedder=None, so it has no vectors for mode='vector' to compare; search with "
            "mode='lexical' or 'hybrid'"
        )
    if not request.text.strip():
        return []
    records = [row.record for _, rows in owners for row in rows]
    scopes = (scope for scope, rows in owners for _ in rows)
    found = [
        place
        for place, (scope, record) in enumerate(zip(scopes, records, strict=True))
        if reaches(scope, record) and satisfies(record, request.where, now)
    ]
    if request.mode == "substring":
        return _containing([(place, records[place]) for place in found], request)
    return _ranked(records, found, request, now)


def _containing(found: Sequence[tuple[int, MemoryRecord]], request: SearchRequest) -> list[Hit]:
    needle = folded(request.text)
    holding = [(record.occurred_at, place, record) for place, record in found if needle in folded(record.text)]
    holding.sort(reverse=True, key=lambda each: each[:2])
    reason = {"substring": Component(1.0, 1.0)} if request.explain else None
    return [_hit(record, 1.0, reason, [needle], reach=len(needle) - 1) for *_, record in holding[: request.limit]]


def _ranked(
    records: Sequence[MemoryRecord], allowed: Sequence[int], request: SearchRequest, now: datetime
) -> list[Hit]:
    index, query = OwnerIndex(None), parse(request.text, request.today)
    index.extend([entry(place, record) for place, record in enumerate(records)], [])
    ranking = rank(
        index if request.where.left is False else index.with_left(),
        query,
        None,
        request,
        now=micros(now),
        allowed=np.array(allowed, np.int64),
        importances=np.array([record.importance for record in records], np.float32),
    )
    places: list[int] = ranking.rows.tolist()
    reasons: Sequence[Mapping[str, Component] | None] = ranking.components or [None] * len(places)
    return [
        _hit(records[place], float(score), reason, query.terms)
        for place, score, reason in zip(places, ranking.scores, reasons, strict=True)
    ]


def _hit(
    record: MemoryRecord,
    score: float,
    reason: Mapping[str, Component] | None,
    needles: Sequence[str],
    *,
    reach: int = 0,
) -> Hit:
    part = best_passage(record.text, pieces_of(record.text, DEFAULT_CHUNKER), needles, None, reach=reach)
    return Hit(record, score, None, reason, part)


def entry(key: int, record: MemoryRecord) -> Entry:
    """The entry of a record that the ranking reads."""
    found = features(record)
    return Entry(
        key=key,
        terms=found.packed,
        flags=found.flags | role_flag(record.role),
        words=found.words,
        session=record.session if is_message(record.kind) else None,
        author=record.author,
        occurred_at=micros(record.occurred_at),
        expires_at=None if record.expires_at is None else micros(record.expires_at),
        active=record.state == "active" and not record.left,
        offset=offset_of(record.occurred_at),
        left=record.left,
    )
