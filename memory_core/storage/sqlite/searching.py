"""Run a search as one read."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Component, Hit, MemoryRecord, Passage, Relevance, Scope, whole_passage
from memory_core.records.size import bytes_of
from memory_core.requests import SearchRequest
from memory_core.retrieval.hits import Hits
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage
from memory_core.retrieval.question import Query
from memory_core.retrieval.ranking import Ranking, rank
from memory_core.retrieval.unit_vectors import from_halves
from memory_core.storage.shared.query_vector import Vector
from memory_core.storage.sqlite.codec import COLUMNS, SqlRow, to_record
from memory_core.storage.sqlite.damage import explaining, unreadable
from memory_core.storage.sqlite.owner_index_cache import OwnerIndexes
from memory_core.storage.sqlite.owners import Owner, Reached, find_all
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.row_cosines import row_cosines, similarities
from memory_core.storage.sqlite.row_filter import RowTest, matching_keys, passing, row_test
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.stale_index import StaleIndexError
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import apart, conditions, needs_python
from memory_core.where.meaning import folded

logger = logging.getLogger(__name__)


class FoundRows(NamedTuple):
    """The result of a search, or that it needs another vector first."""

    hits: Hits
    """Best first."""
    names: frozenset[str] | None = None
    """If given, there are no hits yet: the query has to be embedded again without these names."""


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


async def found(readers: Readers, owner_indexes: OwnerIndexes, search: Search) -> FoundRows:
    """Run a search.

    Raises:
        StorageError: The file is damaged, or was closed meanwhile.
    """
    if not needs_python(search.request.where):
        brief = partial(_ranked_if_ready, owner_indexes=owner_indexes, search=search)
        if (hits := await readers.briefly(brief, of=search.scopes, is_search=True)) is not None:
            return hits
    work = partial(ranked, owner_indexes=owner_indexes, search=search)
    return await readers.run(work, of=search.scopes, is_search=True)


def ranked(db: sqlite3.Connection, owner_indexes: OwnerIndexes, search: Search) -> FoundRows:
    """Rank the records, in one state of the file."""
    with snapshot(db):
        return _ranked_again(db, owner_indexes, find_all(db, search.scopes), search)


def _ranked_if_ready(db: sqlite3.Connection, owner_indexes: OwnerIndexes, search: Search) -> FoundRows | None:
    """The same, if that is brief: the indexes are ready."""
    with snapshot(db):
        owners = find_all(db, search.scopes)
        return _ranked_again(db, owner_indexes, owners, search) if owner_indexes.is_ready(owners) else None


def _ranked_again(db: sqlite3.Connection, owner_indexes: OwnerIndexes, owners: Reached, search: Search) -> FoundRows:
    """Rank the records. An index that names records which the file lacks is stale, whatever made it so: it is loaded
    again, once.

    Raises:
        StorageError: The index differs from the file even after that.
    """
    if not owners:
        return FoundRows(Hits())
    try:
        return _ranked(db, owner_indexes, owners, search)
    except StaleIndexError:
        logger.warning("a search index differed from its file; it is loaded again")
        for owner, _ in owners:
            owner_indexes.forget(owner.id)
    try:
        return _ranked(db, owner_indexes, owners, search)
    except StaleIndexError as error:
        raise unreadable("the search index of an owner") from error


def _ranked(db: sqlite3.Connection, owner_indexes: OwnerIndexes, owners: Reached, search: Search) -> FoundRows:
    request = search.request
    where, left_out = apart(request.where)
    reached = owner_indexes.of(db, owners)
    owner_index = reached.joined(where)
    if (
        search.without is not None
        and (names := frozenset(owner_index.authors_named(search.query.names))) != search.without
    ):
        return FoundRows(Hits(), names)
    allowed = reached.allowed(where, left_out)
    cosines = row_cosines(owner_index, search.vector, request, now=search.now, allowed=allowed)
    ranking = rank(
        owner_index,
        search.query,
        cosines,
        request,
        now=search.now,
        allowed=allowed,
        importances=reached.importances() if request.importance else None,
    )
    keys: list[int] = owner_index.keys.values[ranking.rows].tolist()
    records = _records(db, owners, keys, request.most_bytes)
    texts = {key: record.text for key, record in records.items()}
    found = passages(db, texts, search.query.terms, None if search.vector is None else search.vector.values)
    similar = similarities(owner_index, search.vector, cosines, request, ranking.rows[: len(records)])
    hits = _hits(ranking, list(records.values()), similar, list(found.values()))
    return FoundRows(Hits(hits, _ids(db, keys[len(records) :])))


async def containing(readers: Readers, search: Search) -> Hits:
    """Records whose text contains the query, ignoring case; newest first."""
    needle = folded(search.request.text)
    return (
        await readers.run(partial(_containing, search=search, needle=needle), of=search.scopes)
        if needle.strip()
        else Hits()
    )


def _containing(db: sqlite3.Connection, search: Search, needle: str) -> Hits:
    request, reason = search.request, {"substring": Component(1.0, 1.0)} if search.request.explain else None
    with snapshot(db):
        owners = find_all(db, search.scopes)
        keys = [key for owner, scope in owners for key in _keys_of_texts(db, owner, scope, search, needle)]
        newest = (_newest_first(db, keys) if len(owners) > 1 else keys)[: request.limit]
        records = _records(db, owners, newest, request.most_bytes)
        texts = {key: record.text for key, record in records.items()}
        parts = passages(db, texts, [needle], None, reach=len(needle) - 1)
        hits = (Hit(record, 1.0, None, reason, parts[key]) for key, record in records.items())
        return Hits(hits, _ids(db, newest[len(records) :]))


def _newest_first(db: sqlite3.Connection, keys: Sequence[int]) -> list[int]:
    """The keys of records of several owners, each of whom has the newest first."""
    times = _column(db, "occurred_at", keys)
    return sorted(keys, key=times.__getitem__, reverse=True)


def _keys_of_texts(db: sqlite3.Connection, owner: Owner, scope: Scope, search: Search, needle: str) -> list[int]:
    """The newest records of an owner that contain `needle` and satisfy the conditions."""
    found = conditions(owner.id, scope, search.request.where, search.now, hides=owner.hides)
    other = row_test(found)

    def contains(row: SqlRow) -> bool:
        text, *rest = row
        with explaining("the text of a record"):
            return needle in folded(text) and (other is None or other.passes(tuple(rest)))

    columns, parameters = ("NULL", ()) if other is None else (other.columns, other.parameters)
    test = RowTest(f"text, {columns}", parameters, contains)
    found.in_python = None
    return passing(db, test, matching_keys(db, found, "ORDER BY occurred_at DESC, key DESC"), search.request.limit)


def _records(
    db: sqlite3.Connection, owners: Reached, keys: Sequence[int], most_bytes: int | None
) -> dict[int, MemoryRecord]:
    """The records with these keys, in this order, until they have `most_bytes` together."""
    names = {owner.id: (scope.app, scope.user or "") for owner, scope in owners}
    records: dict[int, MemoryRecord] = {}
    size, most = 0, len(keys) if most_bytes is None else _AT_ONCE
    while len(records) < len(keys) and (most_bytes is None or size < most_bytes):
        some = keys[len(records) : len(records) + most]
        for key, row in zip(some, _rows(db, COLUMNS, some), strict=True):
            records[key] = to_record(row, *names[key >> OWNER_BITS])
        size += 0 if most_bytes is None else sum(bytes_of(records[key]) for key in some)
    return records


_AT_ONCE: Final = 8
"""Records that are read at once where their bytes are limited, which nobody knows before."""


def _ids(db: sqlite3.Connection, keys: Sequence[int]) -> list[str]:
    return [*_column(db, "id", keys).values()]


def _column(db: sqlite3.Connection, name: str, keys: Sequence[int]) -> dict[int, Any]:
    """A column of the records with these keys, in this order."""
    return {key: row[0] for key, row in zip(keys, _rows(db, name, keys), strict=True)}


def _rows(db: sqlite3.Connection, columns: str, keys: Sequence[int]) -> list[SqlRow]:
    """The columns of the records with these keys, in this order; the last one is the key.

    Raises:
        StaleIndexError: The file lacks one of them.
    """
    if not keys:
        return []
    marks = ",".join("?" * len(keys))
    rows = {row[-1]: row for row in db.execute(f"SELECT {columns}, key FROM record WHERE key IN ({marks})", keys)}
    if len(rows) < len(keys):
        raise StaleIndexError
    return [rows[key] for key in keys]


def _hits(
    ranking: Ranking, records: Sequence[MemoryRecord], similar: Sequence[float | None], found: Sequence[Passage]
) -> list[Hit]:
    """The hits of the first rows of a ranking, of which these are the records."""
    scores = ranking.scores.tolist()
    parts: Sequence[Mapping[str, Component] | None] = ranking.components or [None] * len(scores)
    relevances: Sequence[Relevance | None] = ranking.relevances or [None] * len(scores)
    first = slice(len(records))
    ranked = scores[first], similar, parts[first], found, relevances[first]
    return [Hit(*of) for of in zip(records, *ranked, strict=True)]


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
