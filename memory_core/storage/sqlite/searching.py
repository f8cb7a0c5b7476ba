"""Run a search as one unit of work on the read connection."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.concurrency.threads import short_work
from memory_core.models import Component, Hit, MemoryRecord, Passage, Relevance, Scope, whole_passage
from memory_core.requests import SearchRequest
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage
from memory_core.retrieval.question import Query
from memory_core.retrieval.ranking import Ranking, rank
from memory_core.retrieval.unit_vectors import from_halves
from memory_core.storage.shared.query_vector import Vector
from memory_core.storage.sqlite.codec import COLUMNS, to_record
from memory_core.storage.sqlite.damage import explaining, unreadable
from memory_core.storage.sqlite.owner_index_cache import Missing, OwnerIndexes
from memory_core.storage.sqlite.owners import Owner, Reached, find, find_all
from memory_core.storage.sqlite.readers import Readers, looks_long
from memory_core.storage.sqlite.row_cosines import row_cosines, similarities
from memory_core.storage.sqlite.row_filter import RowFilter, matching_keys
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.stale_index import StaleIndexError
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import apart, conditions
from memory_core.where.meaning import folded
from memory_core.where.where import Where

logger = logging.getLogger(__name__)

MOST_ROUNDS: Final = 3
"""The number of times that a search lets other searches go first while its data is read: the owner's records, then
the rows that match its conditions, and once more if they changed in the meantime."""
FEW_TERMS: Final = 64
"""Most words of a query that are scored in less than a millisecond."""


class FoundRows(NamedTuple):
    """The result of a search, or what it needs first."""

    hits: list[Hit]
    """Best first."""
    names: frozenset[str] | None = None
    """If given, there are no hits yet: the query has to be embedded again without these names."""
    missing: Missing | None = None
    """If given, there are no hits yet: this has to be read first, on the other connection."""


@dataclass(frozen=True, slots=True)
class Search:
    """A request with everything computed for it in advance."""

    scopes: tuple[Scope, ...]
    """Of different owners."""
    request: SearchRequest
    query: Query
    vector: Vector | None
    without: frozenset[str] | None
    """The participants' names that were removed from the query for its vector; `None` if that does not matter."""
    now: int
    """Microseconds since 1970 UTC."""
    left_out: Sequence[Where] = ()
    """Conditions of which none may be true, apart from those of the request; see `apart`."""
    is_patient: bool = False
    """Read everything needed now, however long it takes."""


async def found(readers: Readers, owner_indexes: OwnerIndexes, search: Search) -> FoundRows:
    """Run a search: in the loop's thread if it takes about a millisecond, otherwise in the thread for short reads.

    Long reads use the other connection, so that searches of other owners can run at the same time. An index that
    names records which the file lacks is stale, whatever made it so: it is loaded again, once.

    Raises:
        StorageError: The index differs from the file even after that.
    """
    try:
        return await _found(readers, owner_indexes, search)
    except StaleIndexError:
        logger.warning("a search index differed from its file; it is loaded again")
        await readers.brief.run(lambda db: owner_indexes.drop(db, search.scopes))
    try:
        return await _found(readers, owner_indexes, search)
    except StaleIndexError as error:
        raise unreadable("the search index of an owner") from error


async def _found(readers: Readers, owner_indexes: OwnerIndexes, search: Search) -> FoundRows:
    where, left_out = apart(search.request.where)
    search = replace(search, request=replace(search.request, where=where), left_out=left_out) if left_out else search
    result = await readers.brief.briefly(partial(ranked_if_brief, owner_indexes=owner_indexes, search=search))
    if result is None:
        with short_work():
            result = await readers.brief.run(partial(ranked, owner_indexes=owner_indexes, search=search))
    rounds = 0
    while result.missing is not None:
        rounds += 1
        search = replace(search, is_patient=rounds == MOST_ROUNDS)
        take_over = await result.missing(readers)
        result = await readers.brief.run(partial(_ranked_after, take_over, owner_indexes=owner_indexes, search=search))
    return result


def ranked_if_brief(db: sqlite3.Connection, owner_indexes: OwnerIndexes, search: Search) -> FoundRows | None:
    """`ranked` if it takes about a millisecond, otherwise `None`."""
    with snapshot(db):
        owners = find_all(db, search.scopes)
        is_brief = len(search.query.terms) <= FEW_TERMS and (
            not owners or owner_indexes.is_ready(owners, search.request)
        )
        return _ranked(db, owner_indexes, owners, search) if is_brief else None


def ranked(db: sqlite3.Connection, owner_indexes: OwnerIndexes, search: Search) -> FoundRows:
    """Run a search."""
    with snapshot(db):
        return _ranked(db, owner_indexes, find_all(db, search.scopes), search)


def _ranked_after(
    take_over: Callable[[], None], db: sqlite3.Connection, owner_indexes: OwnerIndexes, search: Search
) -> FoundRows:
    """`ranked`, after what was missing has been read."""
    take_over()
    return ranked(db, owner_indexes, search)


def _ranked(db: sqlite3.Connection, owner_indexes: OwnerIndexes, owners: Reached, search: Search) -> FoundRows:
    if not owners:
        return FoundRows([])
    request = search.request
    if not search.is_patient and (missing := owner_indexes.missing(db, owners, request.where)):
        return FoundRows([], missing=missing)
    owner_index = owner_indexes.of(db, owners, request.where)
    if (
        search.without is not None
        and (names := frozenset(owner_index.authors_named(search.query.names))) != search.without
    ):
        return FoundRows([], names)
    allowed = owner_indexes.allowed(db, owners, request.where, search.left_out)
    cosines = row_cosines(owner_index, search.vector, request, now=search.now, allowed=allowed)
    ranking = rank(
        owner_index,
        search.query,
        cosines,
        request,
        now=search.now,
        allowed=allowed,
        importances=owner_indexes.importances(db, owners) if request.importance else None,
    )
    records = _records(db, owners, owner_index.keys.values[ranking.rows].tolist())
    texts = {key: record.text for key, record in records.items()}
    found = passages(db, texts, search.query.terms, None if search.vector is None else search.vector.values)
    similar = similarities(owner_index, search.vector, cosines, request, ranking.rows)
    return FoundRows(_hits(ranking, list(records.values()), similar, list(found.values())))


async def containing(readers: Readers, search: Search) -> list[Hit]:
    """Records whose text contains the query, ignoring case; newest first."""
    needle = folded(search.request.text)
    if not needle.strip():
        return []
    found = [hit for scope in search.scopes for hit in await _containing(readers, scope, search, needle)]
    if len(search.scopes) > 1:
        found.sort(key=lambda hit: hit.record.occurred_at, reverse=True)
    return found[: search.request.limit]


async def _containing(readers: Readers, scope: Scope, search: Search, needle: str) -> list[Hit]:
    """`containing` for one owner."""

    def begin(db: sqlite3.Connection) -> RowFilter | None:
        with snapshot(db):
            owner = find(db, scope)
            return None if owner is None else _texts(db, owner, scope, search, needle)

    row_filter = await readers.run(begin, unless=lambda db: looks_long(find(db, scope), search.request.where))
    if row_filter is None:
        return []
    await readers.run_filter(row_filter)
    return await readers.brief.run(partial(_kept, row_filter=row_filter, scope=scope, search=search, needle=needle))


def _texts(db: sqlite3.Connection, owner: Owner, scope: Scope, search: Search, needle: str) -> RowFilter:
    """The filter for texts that contain `needle`, over the records that satisfy the SQL conditions."""
    found = conditions(owner.id, scope, search.request.where, search.now, hides=owner.hides)
    decided = found.in_python
    columns, test = ("NULL", None) if decided is None else (decided.columns, decided.test())
    parameters = [] if decided is None else decided.parameters
    tests = 0 if decided is None else decided.tests

    def contains(row: tuple[Any, ...]) -> bool:
        text, *rest = row
        with explaining("the text of a record"):
            return needle in folded(text) and (test is None or test(tuple(rest)))

    keys = matching_keys(db, found, "ORDER BY occurred_at DESC, key DESC")
    return RowFilter(f"text, {columns}", parameters, contains, keys, search.request.limit, tests)


def _kept(db: sqlite3.Connection, row_filter: RowFilter, scope: Scope, search: Search, needle: str) -> list[Hit]:
    reason = {"substring": Component(1.0, 1.0)} if search.request.explain else None
    with snapshot(db):
        records = _records(db, find_all(db, [scope]), row_filter.recheck(db))
        texts = {key: record.text for key, record in records.items()}
        parts = passages(db, texts, [needle], None, reach=len(needle) - 1)
        return [Hit(record, 1.0, None, reason, parts[key]) for key, record in records.items()]


def _records(db: sqlite3.Connection, owners: Reached, keys: list[int]) -> dict[int, MemoryRecord]:
    marks = ",".join("?" * len(keys))
    rows = db.execute(f"SELECT {COLUMNS}, key FROM record WHERE key IN ({marks})", keys).fetchall()
    if len(rows) < len(keys):
        raise StaleIndexError
    names = {owner.id: (scope.app, scope.user or "") for owner, scope in owners}
    by_key = {row[-1]: to_record(row, *names[row[-1] >> OWNER_BITS]) for row in rows}
    return {key: by_key[key] for key in keys}


def _hits(
    ranking: Ranking, records: Sequence[MemoryRecord], similar: Sequence[float | None], found: Sequence[Passage]
) -> list[Hit]:
    scores = ranking.scores.tolist()
    parts: Sequence[Mapping[str, Component] | None] = ranking.components or [None] * len(records)
    relevances: Sequence[Relevance | None] = ranking.relevances or [None] * len(records)
    return [Hit(*of) for of in zip(records, scores, similar, parts, found, relevances, strict=True)]


_PIECES = (
    "SELECT record, start, stop, vector FROM chunk WHERE record IN "
    "(SELECT record FROM chunk WHERE n = 1 AND record IN (SELECT value FROM json_each(?))) ORDER BY record, n"
)


def passages(
    db: sqlite3.Connection,
    texts: Mapping[int, str],
    needles: Sequence[str],
    vector: NDArray[np.float32] | None,
    *,
    reach: int = 0,
) -> dict[int, Passage]:
    """The passage of each text, by the key of its record; see `best_passage`."""
    found = {key: whole_passage(text) for key, text in texts.items()}
    long = [key for key, text in texts.items() if len(text) > WHOLE_CHARS]
    if long:
        rows = db.execute(_PIECES, (f"[{','.join(map(str, long))}]",))
        for key, some in groupby(rows, itemgetter(0)):
            with explaining("the pieces of a text"):
                found[key] = _best(texts[key], list(some), needles, vector, reach)
    return found


def _best(
    text: str, pieces: Sequence[Sequence[Any]], needles: Sequence[str], vector: NDArray[np.float32] | None, reach: int
) -> Passage:
    spans = [(start, stop) for _, start, stop, _ in pieces]
    cosines = None if vector is None else np.array([_cosine(piece[3], vector) for piece in pieces], np.float32)
    return best_passage(text, spans, needles, cosines, reach=reach)


def _cosine(blob: bytes | None, vector: NDArray[np.float32]) -> float:
    return float("nan") if blob is None else float(from_halves(blob, len(vector))[0] @ vector)
