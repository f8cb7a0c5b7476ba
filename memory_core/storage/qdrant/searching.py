"""A search: the server selects candidates by words and by meaning, and the client ranks them by the shared rules.

It takes three round trips:

1. the best by words, the best by meaning, and the newest records as a background, each with what the ranking reads;
2. the turns around the leading candidates, and the cosines of what was found by words, in one query by vector;
3. the records of the hits, with the vectors of long ones for their best passages.

A server returns the best cosine of a text's pieces but not the piece, so first pieces, which have no handicap, have a
vector of their own (`Dense.cosines`). The statistics of the ranking (weight of a term, scale of a cosine) are those of
the fetched records: the ranking is exact for an owner with at most `CANDIDATES` records, and approximate for a larger
one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Component, Hit, MemoryRecord, Passage, Scope
from memory_core.protocols import ListRequest, SearchRequest
from memory_core.retrieval.dense import chance
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage, whole
from memory_core.retrieval.postings import pack
from memory_core.retrieval.question import Query
from memory_core.retrieval.ranking import Ranking, Vector, rank
from memory_core.storage.qdrant import listing
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import PENDING, STORED_FIELDS, Row, Stored, to_row, to_stored
from memory_core.storage.qdrant.owners import AUTHORS_SECONDS, CACHED, Owner, Owners
from memory_core.storage.qdrant.reach import reachable
from memory_core.storage.qdrant.succession import resolved
from memory_core.storage.qdrant.vectors import WORDS, head_of, rows_of, sparse_query
from memory_core.storage.qdrant.where import (
    Clause,
    all_of,
    among,
    any_of,
    conditions,
    either,
    holding,
    is_selective,
    owned,
    same,
)
from memory_core.storage.shared.values import micros
from memory_core.where.meaning import folded
from memory_core.where.value import Where

Floats = NDArray[np.float32]

SIMILARITY_DIGITS: Final = 6
"""Decimals of a similarity; further ones depend on how many points a request compares."""
CANDIDATES: Final = 200
"""Minimum number of candidates by words and by meaning; twice the limit if that is more."""
LEADING: Final = 32
"""How many of the candidates, the best by what is known after the first round trip, get their neighbours; as many as
the limit if that is more."""
RANKED_FIELDS: Final = ("_row", "_terms", "_closing")
"""The payload fields of a candidate."""
NEIGHBOURS: Final = 6
"""Maximum number of fetched neighbours of each: two before and two after it, and some for turns of one moment."""
SCANNED: Final = 256
"""Records of one page of a search for a substring."""
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
    using: str | None
    """The name of the vector that is compared."""
    now: datetime
    owner_statistics: bool
    """Whether the server can weight terms by their frequency within this owner instead of the whole collection."""
    is_local: bool
    """Whether there is no server, so that searches are exact by default."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A fetched record."""

    row: Row
    terms: str

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> _Candidate:
        return cls(to_row(payload), payload.get("_terms", ""))


@dataclass(slots=True)
class _Found:
    """The fetched records, by point."""

    rows: dict[str, _Candidate] = field(default_factory=dict[str, _Candidate])
    cosines: dict[str, float] = field(default_factory=dict[str, float])
    """The best of any piece."""
    first: dict[str, float] = field(default_factory=dict[str, float])
    """Those of the first pieces of texts of several pieces."""
    allowed: set[str] = field(default_factory=set[str])
    """Points that satisfy the caller's conditions."""

    def cosine(self, point: str, spread: float) -> float:
        """What the ranking counts: the first piece as it is, and the best of the others with a handicap."""
        best = self.cosines[point] - spread * chance(self.rows[point].row.pieces or 1)
        return max(best, self.first.get(point, best)) if spread else best

    def take(self, points: Sequence[models.ScoredPoint], *, is_measured: bool, is_allowed: bool = False) -> None:
        """Add points; `is_measured` if their score is a cosine."""
        for point in points:
            self.rows.setdefault(str(point.id), _Candidate.of(point.payload or {}))
            if is_measured:
                self.cosines[str(point.id)] = point.score
            if is_allowed:
                self.allowed.add(str(point.id))


async def participants(owners: Owners, owner: Owner) -> tuple[str, ...]:
    """The authors of an owner's records, so that their names can be removed from the query; cached for a minute."""
    known = owners.authors.get(owner.scope)
    if known is not None and time.monotonic() < known[0]:
        return known[1]
    found = tuple(await owner.points.values("author", all_of(owned(owner.key)), limit=MAX_PARTICIPANTS))
    owners.authors[owner.scope] = (time.monotonic() + AUTHORS_SECONDS, found)
    if len(owners.authors) > CACHED:
        owners.authors.popitem(last=False)
    return found


async def containing(owner: Owner, scope: Scope, request: SearchRequest, now: datetime) -> list[Hit]:
    """Records whose text contains the query, ignoring case; newest first. Reads every record until enough are found."""
    needle = folded(request.text)
    reason = {"substring": Component(1.0, 1.0)} if request.explain else None
    hits: list[Hit] = []
    cursor: str | None = None
    while needle.strip():
        wanted = ListRequest(where=request.where, order="newest", limit=SCANNED, cursor=cursor, touch=False)
        page, stored = await listing.page(owner, scope, wanted, now)
        matching = [item for item in stored if needle in folded(item.record.text)]
        parts = [best_passage(item.record.text, item.spans, [needle], None, reach=len(needle) - 1) for item in matching]
        hits += [Hit(item.record, 1.0, None, reason, part) for item, part in zip(matching, parts, strict=True)]
        cursor = page.cursor
        if cursor is None or len(hits) >= request.limit:
            break
    return hits[: request.limit]


async def ranked(owner: Owner, search: Search) -> list[Hit]:
    """The best hits, best first."""
    reach = await reachable(owner, search.scope, search.request.where, search.now)
    if reach is None:
        return []
    is_narrow = is_selective(search.scope, search.request.where)
    found = await _candidates(owner, search, reach, is_narrow=is_narrow)
    await _complete(owner, search, found, reach if is_narrow else None)
    order = _order(found)
    ranking = _rank(search, found, order, is_narrow=is_narrow)
    chosen = [order[int(row)] for row in ranking.rows]
    records, parts = await _records(owner, search, found, chosen)
    # A record deleted since the candidates were fetched is left out.
    return [
        hit(ranking, position, records[point].record, parts[point], found.cosines.get(point))
        for position, point in enumerate(chosen)
        if point in records
    ]


async def _candidates(owner: Owner, search: Search, reach: Sequence[Clause], *, is_narrow: bool) -> _Found:
    """The best candidates by words and by meaning. If conditions are narrow, the best of all records of the owner are
    fetched too, for comparison."""
    whole = conditions(owner.key, Scope(search.scope.app, search.scope.user), Where(), search.now) or []
    widths = [reach, whole] if is_narrow and search.request.mode != "vector" else [reach]
    arms = [(request, where is reach) for where in widths for request in _arms(owner, search, where)]
    if search.request.mode != "vector":
        arms.append((_by_arrival([owned(owner.key)], CANDIDATES, models.Direction.DESC), False))
    if not search.request.floor:
        arms.append((_by_arrival(reach, _limit(search), models.Direction.ASC), True))
    found = _Found()
    answers = await owner.points.query([request for request, _ in arms])
    for (request, is_allowed), answer in zip(arms, answers, strict=True):
        found.take(answer, is_measured=request.using not in (None, WORDS), is_allowed=is_allowed)
    return found


def _arms(owner: Owner, search: Search, where: Sequence[Clause]) -> list[models.QueryRequest]:
    limit = _limit(search)
    if search.request.every_word:  # however many have some of the words
        where = [*where, *(holding("_terms", term) for term in search.query.terms)]
    arms: list[models.QueryRequest] = []
    if search.query.terms and search.request.mode != "vector":
        idf = models.IdfCorpusParams(corpus=all_of(owned(owner.key)))
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
        arms.append(_nearest(search, all_of(*where), limit, _RESCORED))
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
    search: Search, where: models.Filter, limit: int, params: models.SearchParams, *, with_payload: bool = True
) -> models.QueryRequest:
    assert search.vector is not None  # noqa: S101  (the callers looked)
    return models.QueryRequest(
        query=models.NearestQuery(nearest=[search.vector.values.tolist()]),
        using=search.using,
        filter=where,
        params=None if search.is_local else params,
        limit=limit,
        with_payload=list(RANKED_FIELDS) if with_payload else False,
    )


async def _complete(owner: Owner, search: Search, found: _Found, reach: Sequence[Clause] | None) -> None:
    """Fetch the neighbours of the leading candidates, missing cosines, and which candidates satisfy the conditions."""
    unmeasured = [] if search.vector is None else sorted(found.rows.keys() - found.cosines.keys())
    around = [] if search.request.mode == "vector" else _around(search, found)
    most = NEIGHBOURS * _leading(search)
    requests: list[models.QueryRequest] = []
    long = [point for point, candidate in found.rows.items() if candidate.row.pieces > 1]
    if search.vector is not None and search.request.mode != "vector" and (long or around):
        several = all_of(owned(owner.key), either(among(sorted(long)), *around))
        request = _nearest(search, several, len(long) + most, _EXACT, with_payload=False)
        first = models.NearestQuery(nearest=search.vector.values.tolist())
        requests.append(request.model_copy(update={"query": first, "using": head_of(search.using or "")}))
    if search.vector is not None and unmeasured:
        measured = all_of(owned(owner.key), among(unmeasured))
        requests.append(_nearest(search, measured, len(unmeasured), _EXACT, with_payload=False))
    if around:
        near = all_of(owned(owner.key), either(*around), but_not=[among(sorted(found.rows))])
        fetched = all_of(near, same("_keys", PENDING)) if search.vector is not None else near
        requests.append(models.QueryRequest(filter=fetched, limit=most, with_payload=list(RANKED_FIELDS)))
        if search.vector is not None:
            requests.append(_nearest(search, near, most, _EXACT))
    unknown = [] if reach is None else sorted(found.rows.keys() - found.allowed)
    if unknown and reach is not None:
        requests.append(models.QueryRequest(filter=all_of(*reach, among(unknown)), limit=len(unknown)))
    if around and reach is not None:
        requests.append(models.QueryRequest(filter=all_of(*reach, either(*around)), limit=most))
    for request, answer in zip(requests, await owner.points.query(requests), strict=True):
        cosines = {str(point.id): point.score for point in answer if request.using is not None}
        (found.cosines if request.using == search.using else found.first).update(cosines)
        if request.with_payload:
            found.take(answer, is_measured=False)
        elif request.using is None:
            found.allowed.update(str(point.id) for point in answer)


def _leading(search: Search) -> int:
    return max(LEADING, search.request.limit)


def _around(search: Search, found: _Found) -> list[Clause]:
    """The turns before and after the leading candidates, which are not fetched yet."""
    order = _order(found)
    request = replace(search.request, limit=_leading(search), floor=False, every_word=False, explain=False)
    leading = _rank(replace(search, request=request), found, order, is_narrow=False).rows
    turns = [row for n in leading if (row := found.rows[order[int(n)]].row).session is not None]
    fetched = {candidate.row.seq for candidate in found.rows.values()}
    before = sorted({seq for row in turns for seq in row.before} - fetched)
    after = sorted({row.seq for row in turns})
    return [*([any_of("_seq", before)] if before else []), *([any_of("_before", after)] if after else [])]


def _order(found: _Found) -> list[str]:
    return sorted(found.rows, key=lambda point: (found.rows[point].row.seq, point))


def _rank(search: Search, found: _Found, order: Sequence[str], *, is_narrow: bool) -> Ranking:
    owner_index = OwnerIndex(None if search.vector is None else len(_ONES))
    spread = search.vector.unrelated.spread if search.vector is not None and search.request.mode != "vector" else 0.0
    vectors = [(n, _as_vector(found.cosine(point, spread))) for n, point in enumerate(order) if point in found.cosines]
    owner_index.extend([_entry(n, found.rows[point]) for n, point in enumerate(order)], vectors)
    allowed = np.array([n for n, point in enumerate(order) if point in found.allowed], np.int64) if is_narrow else None
    vector = None if search.vector is None else replace(search.vector, values=_ONES)
    importances = np.array([found.rows[point].row.importance for point in order], np.float32)
    return rank(
        owner_index,
        search.query,
        vector,
        search.request,
        now=micros(search.now),
        allowed=allowed,
        importances=importances,
    )


def _entry(key: int, found: _Candidate) -> Entry:
    row = found.row
    return Entry(
        key=key,
        terms=pack(found.terms.split()),
        flags=row.flags,
        words=row.words,
        session=row.session,
        author=row.author,
        occurred_at=row.occurred_at,
        expires_at=row.expires_at,
        active=row.active,
    )


def _as_vector(cosine: float) -> bytes:
    """A vector whose product with `_ONES` is this number: two float16 numbers, whose sum is exact enough."""
    cosine = round(cosine, COSINE_DIGITS)
    high = np.float16(cosine)
    return np.array([high, cosine - float(high)], np.float16).tobytes()


async def _records(
    owner: Owner, search: Search, found: _Found, chosen: Sequence[str]
) -> tuple[dict[str, Stored], dict[str, Passage]]:
    """The records of the hits as a reader sees them, and the best-matching part of each text."""
    if not chosen:
        return {}, {}
    many = [point for point in chosen if found.rows[point].row.pieces > 1] if search.vector is not None else []
    requests = [models.QueryRequest(filter=all_of(among(chosen)), limit=len(chosen), with_payload=list(STORED_FIELDS))]
    if many and search.using is not None:
        requests.append(models.QueryRequest(filter=all_of(among(many)), limit=len(many), with_vector=[search.using]))
    answers = await owner.points.query(requests)
    there = await resolved(owner, [to_stored(point.id, point.payload) for point in answers[0]])
    states = search.request.where.states
    records = {item.point: item for item in there if item.closing is None or item.record.state in states}
    cosines = {str(point.id): _cosines(point.vector, search) for point in (answers[1] if many else ())}
    return records, {point: _passage(item, search, cosines.get(point)) for point, item in records.items()}


def _cosines(vectors: Any, search: Search) -> Floats | None:
    assert search.vector is not None  # noqa: S101  (vectors are fetched only for one)
    rows = np.frombuffer(b"".join(rows_of(vectors, search.using)), np.float16)
    return rows.reshape(-1, len(search.vector.values)).astype(np.float32) @ search.vector.values if len(rows) else None


def _passage(item: Stored, search: Search, near: Floats | None) -> Passage:
    text = item.record.text
    if len(item.spans) < 2 or len(text) <= WHOLE_CHARS:
        return whole(text)
    if near is not None and len(near) < len(item.spans):  # a point has no more of them
        near = np.append(near, np.zeros(len(item.spans) - len(near), np.float32))
    return best_passage(text, item.spans, search.query.terms, near)


def hit(ranking: Ranking, position: int, record: MemoryRecord, part: Passage, cosine: float | None) -> Hit:
    """The hit of one row of a ranking."""
    similarity = None if cosine is None else min(max(round(cosine, SIMILARITY_DIGITS), 0.0), 1.0)
    parts = None if ranking.components is None else ranking.components[position]
    return Hit(record, float(ranking.scores[position]), similarity, parts, part)
