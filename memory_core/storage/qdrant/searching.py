"""A search: the server selects candidates by words and by meaning, and the client ranks them by the shared rules.

A server returns the best cosine of a text's pieces but not the piece, so all of them are scaled like later pieces
(`Dense.cosines`).

At least `CANDIDATES` records are fetched by words and by meaning, with the turns around them, and as many of the
owner's newest records as a background. The statistics of the ranking (weight of a term, scale of a cosine) are those of
the fetched records: the ranking is exact for an owner with at most that many records, and approximate for a larger one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Component, Hit, MemoryRecord, Passage, Scope
from memory_core.protocols import ListRequest, SearchRequest
from memory_core.retrieval.dense import chance
from memory_core.retrieval.features import is_turn, role_flag
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage, whole
from memory_core.retrieval.postings import pack
from memory_core.retrieval.question import Query
from memory_core.retrieval.ranking import Ranking, Vector, rank
from memory_core.storage.qdrant import listing
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import RANKED_FIELDS, TEXT, WORDS, Stored, sparse_query, to_stored
from memory_core.storage.qdrant.collection import PAGE, Points
from memory_core.storage.qdrant.reach import reachable
from memory_core.storage.qdrant.where import (
    Clause,
    all_of,
    among,
    any_of,
    conditions,
    holding,
    is_selective,
    owned,
)
from memory_core.storage.shared.values import micros
from memory_core.where.meaning import folded
from memory_core.where.value import Where

Floats = NDArray[np.float32]

SIMILARITY_DIGITS: Final = 6
"""Decimals of a similarity; further ones depend on how many points a request compares."""
CANDIDATES: Final = 200
"""Minimum number of candidates by words and by meaning; twice the limit if that is more."""
NEIGHBOUR_STEPS: Final = 2
"""How many turns around a turn the ranking uses."""
MAX_PARTICIPANTS: Final = 1_000
"""How many authors' names are recognised in a query, the most frequent first."""

COSINE_DIGITS: Final = 4
"""The precision of float16 originals. Further digits vary between computations, and would change the order of records
with the same text."""

_RESCORED: Final = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0), hnsw_ef=256
)
_EXACT: Final = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))
_ONES: Final = np.ones(2, np.float32)


@dataclass(frozen=True, slots=True)
class Search:
    """A request with everything computed for it in advance."""

    scope: Scope
    request: SearchRequest
    query: Query
    vector: Vector | None
    now: datetime
    owner_statistics: bool
    """Whether the server can weight terms by their frequency within this owner instead of the whole collection."""
    is_local: bool
    """Whether there is no server, so that searches are exact by default."""


@dataclass(slots=True)
class _Found:
    """The fetched records, by point."""

    rows: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    cosines: dict[str, float] = field(default_factory=dict[str, float])
    allowed: set[str] = field(default_factory=set[str])
    """Points that satisfy the caller's conditions."""


async def participants(points: Points, scope: Scope) -> list[str]:
    """The authors of an owner's records, so that their names can be removed from the query."""
    return await points.values("author", all_of(owned(scope)), limit=MAX_PARTICIPANTS)


async def containing(points: Points, scope: Scope, request: SearchRequest, now: datetime) -> list[Hit]:
    """Records whose text contains the query, ignoring case; newest first. Reads every record until enough are found."""
    needle = folded(request.text)
    reason = {"substring": Component(1.0, 1.0)} if request.explain else None
    hits: list[Hit] = []
    cursor: str | None = None
    while needle.strip():
        wanted = ListRequest(where=request.where, order="newest", limit=PAGE, cursor=cursor, touch=False)
        page, stored = await listing.page(points, scope, wanted, now)
        matching = [item for item in stored if needle in folded(item.record.text)]
        parts = [best_passage(item.record.text, item.spans, [needle], None, reach=len(needle) - 1) for item in matching]
        hits += [Hit(item.record, 1.0, None, reason, part) for item, part in zip(matching, parts, strict=True)]
        cursor = page.cursor
        if cursor is None or len(hits) >= request.limit:
            break
    return hits[: request.limit]


async def ranked(points: Points, search: Search) -> list[Hit]:
    """The best hits, best first."""
    reach = await reachable(points, search.scope, search.request.where, search.now)
    if reach is None:
        return []
    selective = is_selective(search.scope, search.request.where)
    found = await _candidates(points, search, reach, selective=selective)
    if search.request.mode != "vector":
        await _add_neighbours(points, search.scope, found)
    await _complete(points, search, found, reach if selective else None)
    order = sorted(found.rows, key=lambda point: (found.rows[point]["_seq"], point))
    ranking = _rank(search, found, order, selective=selective)
    chosen = [order[int(row)] for row in ranking.rows]
    records = {str(record.id): to_stored(str(record.id), record.payload) for record in await points.read(chosen)}
    parts = await _passages(points, search, records)
    # A record deleted since the candidates were fetched is left out.
    return [
        hit(ranking, position, records[point].record, parts[point], found.cosines.get(point))
        for position, point in enumerate(chosen)
        if point in records
    ]


async def _passages(points: Points, search: Search, records: Mapping[str, Stored]) -> dict[str, Passage]:
    """The best-matching part of each text."""
    long = [point for point, item in records.items() if len(item.spans) > 1 and len(item.record.text) > WHOLE_CHARS]
    cosines: dict[str, Floats] = {}
    if search.vector is not None and long:
        for record in await points.read(long, fields=False, vectors=[TEXT]):
            rows: Any = record.vector.get(TEXT) if isinstance(record.vector, dict) else None
            if rows:
                cosines[str(record.id)] = np.asarray(rows, np.float32) @ search.vector.values
    parts = {point: whole(item.record.text) for point, item in records.items()}
    for point in long:
        item, near = records[point], cosines.get(point)
        if near is not None and len(near) < len(item.spans):  # a point has no more of them
            near = np.append(near, np.zeros(len(item.spans) - len(near), np.float32))
        parts[point] = best_passage(item.record.text, item.spans, search.query.terms, near)
    return parts


async def _candidates(points: Points, search: Search, reach: Sequence[Clause], *, selective: bool) -> _Found:
    """The best candidates by words and by meaning. If conditions are narrow, the best of all records of the owner are
    fetched too, for comparison."""
    whole = conditions(Scope(search.scope.app, search.scope.user), Where(), search.now) or []
    widths = [reach, whole] if selective and search.request.mode != "vector" else [reach]
    arms = [(request, where is reach) for where in widths for request in _arms(search, where)]
    if search.request.mode != "vector":
        arms.append((_by_arrival([owned(search.scope)], CANDIDATES, models.Direction.DESC), False))
    if not search.request.floor:
        arms.append((_by_arrival(reach, _limit(search), models.Direction.ASC), True))
    found = _Found()
    answers = await points.query([request for request, _ in arms])
    for (request, is_allowed), answer in zip(arms, answers, strict=True):
        found.rows.update({str(scored.id): scored.payload or {} for scored in answer})
        if request.using == TEXT:
            found.cosines.update({str(scored.id): scored.score for scored in answer})
        if is_allowed:
            found.allowed.update(str(scored.id) for scored in answer)
    return found


def _arms(search: Search, where: Sequence[Clause]) -> list[models.QueryRequest]:
    limit = _limit(search)
    if search.request.every_word:  # however many have some of the words
        where = [*where, *(holding("_terms", term) for term in search.query.terms)]
    arms: list[models.QueryRequest] = []
    if search.query.terms and search.request.mode != "vector":
        idf = models.IdfCorpusParams(corpus=all_of(owned(search.scope)))
        arms.append(
            models.QueryRequest(
                query=models.NearestQuery(nearest=sparse_query(search.query.terms)),
                using=WORDS,
                filter=all_of(*where),
                params=models.SearchParams(idf=idf) if search.owner_statistics else None,
                limit=limit,
                with_payload=list(RANKED_FIELDS),
            )
        )
    if search.vector is not None:
        arms.append(_nearest(search, where, limit, _RESCORED, RANKED_FIELDS))
    return arms


def _limit(search: Search) -> int:
    return max(CANDIDATES, 2 * search.request.limit)


def _by_arrival(where: Sequence[Clause], limit: int, direction: models.Direction) -> models.QueryRequest:
    """Records by arrival, regardless of their content."""
    return models.QueryRequest(
        query=models.OrderByQuery(order_by=models.OrderBy(key="_seq", direction=direction)),
        filter=all_of(*where),
        limit=limit,
        with_payload=list(RANKED_FIELDS),
    )


def _nearest(
    search: Search, where: Sequence[Clause], limit: int, params: models.SearchParams, fields: Sequence[str]
) -> models.QueryRequest:
    assert search.vector is not None  # noqa: S101  (the callers looked)
    return models.QueryRequest(
        query=models.NearestQuery(nearest=[search.vector.values.tolist()]),
        using=TEXT,
        filter=all_of(*where),
        params=None if search.is_local else params,
        limit=limit,
        with_payload=list(fields) or False,
    )


async def _add_neighbours(points: Points, scope: Scope, found: _Found) -> None:
    """Fetch the turns next to the candidates, step by step in both directions."""
    earlier = later = set(found.rows)
    for _ in range(NEIGHBOUR_STEPS):
        wanted = {found.rows[point].get("_before") for point in earlier} - found.rows.keys() - {None}
        before, after = await asyncio.gather(
            points.read([str(point) for point in wanted], fields=RANKED_FIELDS),
            _following(points, scope, later),
        )
        earlier = _take(found, before)
        later = _take(found, after)


async def _following(points: Points, scope: Scope, before: Collection[str]) -> list[models.Record]:
    """The turns after these."""
    ids = sorted(before)
    found: list[models.Record] = []
    for start in range(0, len(ids), PAGE):
        condition = all_of(owned(scope), any_of("_before", ids[start : start + PAGE]))
        found += await points.all(condition, fields=RANKED_FIELDS)
    return found


def _take(found: _Found, records: Iterable[models.Record]) -> set[str]:
    """Add new records to `found`, and return their points."""
    new = {str(record.id): record.payload or {} for record in records if str(record.id) not in found.rows}
    found.rows.update(new)
    return set(new)


async def _complete(points: Points, search: Search, found: _Found, reach: Sequence[Clause] | None) -> None:
    """Fetch the cosines of candidates found by words or as neighbours, and whether they satisfy the conditions."""
    unmeasured = [] if search.vector is None else sorted(found.rows.keys() - found.cosines.keys())
    unknown = [] if reach is None else sorted(found.rows.keys() - found.allowed)
    measured, reached = await asyncio.gather(
        points.query([_measuring(search, unmeasured[n : n + PAGE]) for n in range(0, len(unmeasured), PAGE)]),
        points.query([_reaching(reach or (), unknown[n : n + PAGE]) for n in range(0, len(unknown), PAGE)]),
    )
    found.cosines.update({str(scored.id): scored.score for answer in measured for scored in answer})
    found.allowed.update(str(scored.id) for answer in reached for scored in answer)


def _measuring(search: Search, some: list[str]) -> models.QueryRequest:
    return _nearest(search, [owned(search.scope), among(some)], len(some), _EXACT, ())


def _reaching(reach: Sequence[Clause], some: list[str]) -> models.QueryRequest:
    return models.QueryRequest(filter=all_of(*reach, among(some)), limit=len(some), with_payload=False)


def _rank(search: Search, found: _Found, order: Sequence[str], *, selective: bool) -> Ranking:
    owner_index = OwnerIndex(None if search.vector is None else len(_ONES))
    spread = search.vector.unrelated.spread if search.vector is not None and search.request.mode != "vector" else 0.0
    vectors = [
        (n, _as_vector(found.cosines[point] - spread * chance(found.rows[point].get("_pieces") or 1)))
        for n, point in enumerate(order)
        if point in found.cosines
    ]
    owner_index.extend([_entry(n, found.rows[point]) for n, point in enumerate(order)], vectors)
    allowed = np.array([n for n, point in enumerate(order) if point in found.allowed], np.int64) if selective else None
    vector = None if search.vector is None else replace(search.vector, values=_ONES)
    importances = np.array([found.rows[point]["importance"] for point in order], np.float32)
    return rank(
        owner_index,
        search.query,
        vector,
        search.request,
        now=micros(search.now),
        allowed=allowed,
        importances=importances,
    )


def _entry(key: int, row: Mapping[str, Any]) -> Entry:
    expires = row.get("expires_at")
    return Entry(
        key=key,
        terms=pack(row["_terms"].split()),
        flags=row["_flags"] | role_flag(row.get("role")),
        words=row["_words"],
        session=row.get("session") if is_turn(row["kind"], row.get("role")) else None,
        author=row.get("author"),
        occurred_at=micros(datetime.fromisoformat(row["occurred_at"])),
        expires_at=None if expires is None else micros(datetime.fromisoformat(expires)),
        active=row["state"] == "active",
    )


def _as_vector(cosine: float) -> bytes:
    """A vector whose product with `_ONES` is this number: two float16 numbers, whose sum is exact enough."""
    cosine = round(cosine, COSINE_DIGITS)
    high = np.float16(cosine)
    return np.array([high, cosine - float(high)], np.float16).tobytes()


def hit(ranking: Ranking, position: int, record: MemoryRecord, part: Passage, cosine: float | None) -> Hit:
    """The hit of one row of a ranking."""
    similarity = None if cosine is None else min(max(round(cosine, SIMILARITY_DIGITS), 0.0), 1.0)
    parts = None if ranking.components is None else ranking.components[position]
    return Hit(record, float(ranking.scores[position]), similarity, parts, part)
