"""A search: the server selects candidates by words and by meaning, and the client ranks them by the shared rules.

It takes three round trips:

1. the best by words, the best by meaning, and the newest records as a background, each with what the ranking reads;
2. the turns around the leading candidates, and the cosines of what was found by words, in one query by vector;
3. the records of the hits, with the vectors of long ones for their best passages.

A server returns the best cosine of a text's pieces but not the piece, so first pieces, which have no handicap, have a
vector of their own (`Dense.cosines`). The statistics of the ranking (weight of a term, scale of a cosine) are those of
the fetched records: the ranking is exact for an owner with at most `CANDIDATES` records, and approximate for a larger
one. Several owners that are read together are searched as if one had all of their records.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Hit, Passage, Scope, whole_passage
from memory_core.records.size import bytes_of
from memory_core.requests import SearchRequest
from memory_core.retrieval.dense import chance
from memory_core.retrieval.features import OTHER_LANGUAGE
from memory_core.retrieval.hits import Hits
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage
from memory_core.retrieval.question import Query
from memory_core.retrieval.ranking import Cosines, Ranking, rank
from memory_core.retrieval.term_hashes import pack
from memory_core.storage.qdrant import codec
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Stored
from memory_core.storage.qdrant.connection import IDF_BY_OWNER
from memory_core.storage.qdrant.owners import CACHED, Owner, reachable
from memory_core.storage.qdrant.superseding import resolved
from memory_core.storage.qdrant.where import (
    LEFT,
    Clause,
    all_of,
    among,
    any_of,
    conditions,
    either,
    ordered,
    owned,
    same,
)
from memory_core.storage.shared.query_vector import Compared, Vector
from memory_core.storage.shared.stored_forms import micros
from memory_core.where.where import Where

SIMILARITY_DIGITS: Final = 6
"""Decimals of a similarity; further ones depend on how many points a request compares."""
CANDIDATES: Final = 200
"""Minimum number of candidates by words and by meaning; twice the limit if that is more."""
LEADING: Final = 32
"""The number of candidates, the best by what is known after the first round trip, that get their neighbours; as many
as the limit if that is more."""
RANKED_FIELDS: Final = ["_row", "_terms"]
"""The payload fields of a candidate."""
NEIGHBORS: Final = 6
"""Maximum number of fetched neighbours of each: two before and two after it, and some for turns of one moment."""
MAX_PARTICIPANTS: Final = 1_000
"""The number of authors whose names are recognised in a query, the most frequent first."""

COSINE_DIGITS: Final = 4
"""The precision of float16 originals. Further digits vary between computations, and would change the order of records
with the same text."""

AUTHORS_SECONDS: Final = 60.0
"""The time for which the authors of an owner are cached; other processes may add some."""

_RESCORED: Final = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0), hnsw_ef=256
)
_EXACT: Final = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))


@dataclass(frozen=True, slots=True)
class Search:
    """A request with everything computed for it in advance."""

    owners: Sequence[Owner]
    """The owners that are read together."""
    request: SearchRequest
    query: Query
    vector: Vector | None
    using: str
    """The name of the vectors that are compared with it, which are of the same embedder; empty without one."""
    now: datetime

    @property
    def owned(self) -> Clause:
        """The condition for a record of the owners."""
        return owned(*(owner.key for owner in self.owners))

    @property
    def left_out(self) -> Sequence[Clause]:
        """The condition for a record that takes no part in the ranking: one that was left, unless it is asked for."""
        return [LEFT] if self.request.where.left is False else []

    @property
    def is_narrow(self) -> bool:
        """True if only some of the owners' records may be returned."""
        return self.request.where != Where() or any(one.scope != _unbounded(one.scope) for one in self.owners)

    @property
    def limit(self) -> int:
        """The number of candidates of a kind that are fetched."""
        return max(CANDIDATES, 2 * self.request.limit)

    @property
    def by_meaning(self) -> bool:
        """True if nothing but cosines counts."""
        return self.request.mode == "vector"


class Arm(NamedTuple):
    """A query for candidates."""

    request: models.QueryRequest
    is_allowed: bool = False
    """True if what it finds satisfies the caller's conditions."""
    of_others: bool = False
    """It compares texts in other languages, with a vector for these (`Vector.others`)."""


Scores = defaultdict[str | None, dict[str, float]]
"""By the name of a vector and by point."""


@dataclass(slots=True)
class _Candidates:
    """The fetched records, by point."""

    rows: dict[str, tuple[codec.Row, str]] = field(default_factory=dict[str, tuple[codec.Row, str]])
    """The row that the ranking reads, and the terms, by point."""
    scores: Scores = field(default_factory=lambda: defaultdict(dict))
    """By the name of a vector; those of `Search.using` and of its first pieces are cosines."""
    others: Scores = field(default_factory=lambda: defaultdict(dict))
    """The same of texts in other languages, if they are compared with another vector."""
    allowed: set[str] = field(default_factory=set[str])
    vectors: dict[str, tuple[bytes, ...]] = field(default_factory=dict[str, tuple[bytes, ...]])
    """Of the leading candidates, if they have to be compared with each other."""

    async def fetch(self, search: Search, arms: Sequence[Arm]) -> None:
        """Add what these queries find, in one round trip."""
        answers = await search.owners[0].points.query([arm.request for arm in arms])
        for (request, is_allowed, of_others), answer in zip(arms, answers, strict=True):
            scores = self.others if of_others else self.scores
            scores[request.using].update({point.id: point.score for point in answer})
            self.allowed.update(point.id for point in answer if is_allowed)
            if request.with_vector:
                self.vectors |= {point.id: point.rows(search.using) for point in answer}
            for point in answer if request.with_payload else ():
                self.rows.setdefault(point.id, (codec.to_row(point.payload), point.payload.get("_terms", "")))


async def participants(owners: Sequence[Owner]) -> set[str]:
    """The authors of the owners' records, so that their names can be removed from the query; cached for a minute."""

    async def of(owner: Owner) -> Sequence[str]:
        cached, now = owner.access.authors, time.monotonic()
        known = cached.get(owner.key)
        if known is not None and now < known[0]:
            return known[1]
        found = await owner.points.values("author", all_of(owned(owner.key), but_not=[LEFT]), limit=MAX_PARTICIPANTS)
        if len(cached) >= CACHED:
            cached.clear()
        cached[owner.key] = now + AUTHORS_SECONDS, found
        return found

    return {author for found in await asyncio.gather(*map(of, owners)) for author in found}


async def ranked(search: Search) -> Hits:
    """The best hits, best first."""
    reach = await reachable(search.owners, search.request.where, search.now)
    found = _Candidates()
    await found.fetch(search, _candidates(search, reach))
    await found.fetch(search, _completion(search, found, reach))
    chosen, ranking = _rank(search, found, only_allowed=search.is_narrow)
    hits: list[Hit] = []
    read, size, most = 0, 0, search.request.most_bytes
    while read < len(chosen) and (most is None or size < most):
        some = chosen[read : None if most is None else read + _AT_ONCE]
        records = await _records(search, found, some)
        for n, point in enumerate(some, read):
            if point in records:  # it was not deleted since the candidates were fetched
                item, rows, cosine = records[point]
                similarity = None if cosine is None else min(max(round(cosine, SIMILARITY_DIGITS), 0.0), 1.0)
                reason = None if ranking.components is None else ranking.components[n]
                relevance = None if ranking.relevances is None else ranking.relevances[n]
                passage = _passage(search, item, rows)
                hits.append(Hit(item.record, float(ranking.scores[n]), similarity, reason, passage, relevance))
                size += 0 if most is None else bytes_of(item.record)
        read += len(some)
    return Hits(hits, await _ids(search, chosen[read:]))


_AT_ONCE: Final = 16
"""Records that are read at once where their bytes are limited, which nobody knows before."""


async def _ids(search: Search, chosen: Sequence[str]) -> list[str]:
    """The ids of these points, in their order."""
    if not chosen:
        return []
    request = models.QueryRequest(filter=all_of(among(chosen)), limit=len(chosen), with_payload=["id"])
    (answer,) = await search.owners[0].points.query([request])
    ids = {point.id: str(point.payload["id"]) for point in answer}
    return [ids[point] for point in chosen if point in ids]


def _candidates(search: Search, reach: Sequence[Clause]) -> list[Arm]:
    """The best candidates by words and by meaning. If conditions are narrow, the best of all records of the owners are
    fetched too, for comparison."""
    reached = [(owner.key, _unbounded(owner.scope)) for owner in search.owners]
    arms = [arm._replace(is_allowed=True) for arm in _arms(search, reach)]
    if not search.by_meaning:
        everything = conditions(reached, Where(), search.now)
        everyone = [search.owned, all_of(but_not=search.left_out)]
        arms += _arms(search, everything) if search.is_narrow else ()
        arms.append(Arm(ordered(everyone, "_seq", CANDIDATES, fields=RANKED_FIELDS, descending=True)))
    if not search.request.floor:
        arms.append(Arm(ordered(reach, "_seq", search.limit, fields=RANKED_FIELDS, descending=False), is_allowed=True))
    return arms


def _unbounded(scope: Scope) -> Scope:
    return Scope(scope.app, scope.user)


def _arms(search: Search, where: Sequence[Clause]) -> list[Arm]:
    words = [models.FieldCondition(key="_terms", match=models.MatchText(text=term)) for term in search.query.terms]
    where = [*where, *words] if search.request.every_word else where  # however many have some of the words
    arms: list[Arm] = []
    if search.query.terms and not search.by_meaning:
        has_idf = search.owners[0].points.connection.version >= IDF_BY_OWNER
        of_owners = models.SearchParams(
            idf=models.IdfCorpusParams(corpus=all_of(search.owned, but_not=search.left_out))
        )
        by_words = models.QueryRequest(
            query=models.NearestQuery(nearest=codec.sparse_query(search.query.terms)),
            using=codec.WORDS,
            filter=all_of(*where),
            params=of_owners if has_idf else None,
            limit=search.limit,
            with_payload=RANKED_FIELDS,
        )
        arms.append(Arm(by_words))
    if search.vector is not None:  # an owner's graph is not connected with another's, so each is asked by itself
        each = [all_of(*where, owned(owner.key)) for owner in search.owners]
        for one in each:
            arms += _compared(search, one, search.limit, _RESCORED)
    return arms


def _nearest(
    search: Search,
    where: models.Filter,
    limit: int,
    params: models.SearchParams,
    *,
    vector: NDArray[np.float32],
    with_payload: bool = True,
    first: bool = False,
) -> models.QueryRequest:
    """The records with the highest cosines with a vector, of any piece or of the first of several."""
    values: list[float] = vector.tolist()
    is_local = search.owners[0].points.connection.server.is_local  # and thus exact by default
    return models.QueryRequest(
        query=models.NearestQuery(nearest=values if first else [values]),
        using=codec.head_of(search.using) if first else search.using,
        filter=where,
        params=None if is_local else params,
        limit=limit,
        with_payload=RANKED_FIELDS if with_payload else False,
    )


def _compared(
    search: Search,
    where: models.Filter,
    limit: int,
    params: models.SearchParams,
    *,
    with_payload: bool = True,
    first: bool = False,
) -> list[Arm]:
    """The nearest records as the ranking compares them, and those in other languages, if these are compared
    otherwise."""
    assert search.vector is not None  # noqa: S101  (the callers looked)
    make = partial(_nearest, search, limit=limit, params=params, with_payload=with_payload, first=first)
    arms = [Arm(make(where, vector=search.vector.ranked.vector))]
    if search.vector.others is not None:
        in_others = all_of(where, same("_keys", codec.IN_ANOTHER_LANGUAGE))
        arms.append(Arm(make(in_others, vector=search.vector.others.vector), of_others=True))
    return arms


def _completion(search: Search, found: _Candidates, reach: Sequence[Clause]) -> list[Arm]:
    """The neighbours of the leading candidates, missing cosines, and which of all of them satisfy the conditions."""
    leading = [] if search.by_meaning else _leading(search, found)
    around = _around(leading, found)
    most = NEIGHBORS * max(LEADING, search.request.limit) if around else 0
    near = all_of(search.owned, either(*around), but_not=[among(sorted(found.rows)), *search.left_out])
    arms: list[Arm] = []
    if search.vector is not None:
        if search.query.asks_now and leading:
            of_leading = all_of(among(leading))
            request = models.QueryRequest(
                filter=of_leading, limit=len(leading), with_payload=False, with_vector=[search.using]
            )
            arms.append(Arm(request))
        if unmeasured := sorted(set(_unmeasured(search, found))):
            measured = all_of(search.owned, among(unmeasured))
            arms += _compared(search, measured, len(unmeasured), _EXACT, with_payload=False)
        long = sorted(point for point, (row, _) in found.rows.items() if row.pieces > 1)
        if not search.by_meaning and (long or around):
            several = all_of(search.owned, either(among(long), *around), but_not=search.left_out)
            arms += _compared(search, several, len(long) + most, _EXACT, with_payload=False, first=True)
        if around:
            arms += _compared(search, near, most, _EXACT)
            near = all_of(near, same("_keys", codec.PENDING))  # the others have no vector to compare
    if around:
        arms.append(Arm(models.QueryRequest(filter=near, limit=most, with_payload=RANKED_FIELDS)))
    unknown = sorted(found.rows.keys() - found.allowed)
    if search.is_narrow and (unknown or around):
        satisfying = all_of(*reach, either(among(unknown), *around))
        arms.append(Arm(models.QueryRequest(filter=satisfying, limit=len(unknown) + most), is_allowed=True))
    return arms


def _unmeasured(search: Search, found: _Candidates) -> Iterator[str]:
    """The candidates whose cosine the ranking needs and the server has not told."""
    assert search.vector is not None  # noqa: S101  (the caller looked)
    for point, (row, _) in found.rows.items():
        scores = found.others if search.vector.others is not None and _is_other(row) else found.scores
        if point not in scores[search.using]:
            yield point


def _is_other(row: codec.Row) -> bool:
    return row.flags & OTHER_LANGUAGE > 0


def _leading(search: Search, found: _Candidates) -> list[str]:
    """The best of the candidates, by what is known after the first round trip."""
    limit = max(LEADING, search.request.limit)
    request = replace(search.request, limit=limit, floor=False, every_word=False, explain=False)
    return _rank(replace(search, request=request), found, only_allowed=False)[0]


def _around(leading: Sequence[str], found: _Candidates) -> list[Clause]:
    """The turns before and after the leading candidates, which are not fetched yet."""
    turns = [row for point in leading if (row := found.rows[point][0]).session is not None]
    before = sorted({seq for row in turns for seq in row.before} - {row.seq for row, _ in found.rows.values()})
    after = sorted({row.seq for row in turns})
    return [*([any_of("_seq", before)] if before else []), *([any_of("_before", after)] if after else [])]


def _rank(search: Search, found: _Candidates, *, only_allowed: bool) -> tuple[list[str], Ranking]:
    """The best points, best first, and their ranking."""
    order = sorted(found.rows, key=lambda point: (found.rows[point][0].seq, point))  # by arrival
    owner_index = OwnerIndex(None if search.vector is None else len(search.vector.values))
    vectors = ((n, row) for n, point in enumerate(order) for row in found.vectors.get(point, ()))
    owner_index.extend([_entry(n, *found.rows[point]) for n, point in enumerate(order)], vectors)
    allowed = np.array([n for n, point in enumerate(order) if point in found.allowed], np.int64)
    ranking = rank(
        owner_index,
        search.query,
        _cosines(search, found, order),
        search.request,
        now=micros(search.now),
        allowed=allowed if only_allowed else None,
        importances=np.array([found.rows[point][0].importance for point in order], np.float32),
    )
    return [order[int(row)] for row in ranking.rows], ranking


def _cosines(search: Search, found: _Candidates, order: Sequence[str]) -> Cosines | None:
    """The cosines of these points, rounded to the digits that do not depend on how they were computed."""
    if search.vector is None:
        return None
    ranked, others = search.vector.ranked, search.vector.others
    values = _values(search, found.scores, found, order, ranked)
    if others is not None:
        is_other = np.array([_is_other(found.rows[point][0]) for point in order], np.bool_)
        other_values = _values(search, found.others, found, order, others)
        values = np.where(is_other, ranked.unrelated.taken_from(others.unrelated, other_values), values)
    return search.vector.cosines(values)


def _values(
    search: Search, scores: Scores, found: _Candidates, order: Sequence[str], compared: Compared
) -> NDArray[np.float32]:
    counted = _counted(search, scores, found, 0.0 if search.by_meaning else compared.unrelated.spread)
    values = [round(counted[point], COSINE_DIGITS) if point in counted else math.nan for point in order]
    return np.array(values, np.float32)


def _counted(search: Search, scores: Scores, found: _Candidates, spread: float) -> dict[str, float]:
    """The scores that the ranking counts, by point: the first piece as it is, and the best of the others with a
    handicap."""
    best, first = scores[search.using], scores[codec.head_of(search.using)]
    if not spread:
        return best
    rest = {point: cosine - spread * chance(found.rows[point][0].pieces or 1) for point, cosine in best.items()}
    return {point: max(cosine, first.get(point, cosine)) for point, cosine in rest.items()}


def _entry(key: int, row: codec.Row, terms: str) -> Entry:
    """The entry that the index of a file has for a record; a row has the same fields beside others."""
    fields = Entry._fields[2:-1]  # not `left`: the server leaves out what is not asked for
    return Entry(key, pack(terms.split()), *(getattr(row, name) for name in fields))


async def _records(
    search: Search, found: _Candidates, chosen: Sequence[str]
) -> dict[str, tuple[Stored, Sequence[bytes], float | None]]:
    """The hits as a reader sees them, by point: for texts of several pieces with the vectors of those, and the cosines
    that hits show."""
    if not chosen:
        return {}
    many = [point for point in chosen if found.rows[point][0].pieces > 1] if search.vector is not None else []
    requests = [models.QueryRequest(filter=all_of(among(chosen)), limit=len(chosen), with_payload=True)]
    if many:
        requests.append(models.QueryRequest(filter=all_of(among(many)), limit=len(many), with_vector=[search.using]))
    leans = search.vector is not None and search.vector.leans
    if search.vector is not None and leans:
        shown, those = search.vector.values, all_of(among(chosen))
        requests.append(_nearest(search, those, len(chosen), _EXACT, vector=shown, with_payload=False))
    answers = await search.owners[0].points.query(requests)
    where = search.request.where
    there = await resolved(search.owners, [*map(codec.to_stored, answers[0])], where.states, where.left)
    cosines = {point.id: point.score for point in answers[-1]} if leans else found.scores[search.using]
    rows = {point.id: point.rows(search.using) for answer in answers[1 : 1 + bool(many)] for point in answer}
    return {item.point: (item, rows.get(item.point, ()), cosines.get(item.point)) for item in there}


def _passage(search: Search, item: Stored, rows: Sequence[bytes]) -> Passage:
    """The best-matching part of a text, given the vectors of its pieces, or of some."""
    text, near, rows = item.record.text, None, rows[: len(item.spans)]
    if len(item.spans) < 2 or len(text) <= WHOLE_CHARS:
        return whole_passage(text)
    if rows and search.vector is not None:
        near = np.zeros(len(item.spans), np.float32)
        near[: len(rows)] = np.stack([np.frombuffer(row, np.float16) for row in rows]) @ search.vector.values
    return best_passage(text, item.spans, search.query.terms, near)
