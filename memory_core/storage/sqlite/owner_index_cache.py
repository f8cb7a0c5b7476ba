"""Cache the indexes of recently searched owners and keep them up to date with the file.

Owners that are read together are joined for the search (`joined_index.py`), so a record ranks as if one owner had them
all. Runs in the reader's thread, inside a read transaction: a search sees one state of the file, whichever process
wrote it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Fingerprint, Scope
from memory_core.records.fields import OFFSET
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.requests import SearchRequest
from memory_core.retrieval.arrays import Floats
from memory_core.retrieval.dense import WORTH_GATHERING
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER
from memory_core.retrieval.joined_index import joined
from memory_core.retrieval.owner_index import AT_ONCE, Entries, OwnerIndex
from memory_core.retrieval.unit_vectors import from_halves
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.matching_rows import Lookup, MatchingRows, RowNumbers
from memory_core.storage.sqlite.meta import check_fingerprint
from memory_core.storage.sqlite.one_value import longest_value
from memory_core.storage.sqlite.owners import Owner, Reached, find_all
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.stale_index import StaleIndexError
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import has_few_values, needs_python, owner_range
from memory_core.values.limits import MAX_KEY_CHARS
from memory_core.where.where import EVERYTHING, Where

READY_ROWS: Final = 2_048
"""Most records that are searched in less than a millisecond once their index is loaded."""
READY_CHANGES: Final = 16
"""Most new records that can be read in addition within that time."""

LONG_LOAD: Final = 5_000
"""Most records that are loaded in less time than other searches may wait."""

Missing = Callable[[Readers], Awaitable[Callable[[], None]]]

_FLAGS: Final = f"flags | CASE role WHEN 'user' THEN {FROM_USER} WHEN 'assistant' THEN {FROM_ASSISTANT} ELSE 0 END"
_SESSION: Final = f"CASE kind WHEN '{MESSAGE_KIND}' THEN session END"
"""See `kinds.is_message`."""
_ACTIVE: Final = "state = 'active'"
_NUMBERS: Final = (
    *("record.key", _FLAGS, "words", "occurred_at", OFFSET, _ACTIVE, "record.left"),
    "length(terms)",
)
_ENTRIES: Final = (
    f"SELECT {', '.join(f'group_concat({number})' for number in _NUMBERS)}, CAST(group_concat(terms, '') AS BLOB), "
    f"json_group_array({_SESSION}), json_group_array(author), json_group_array(expires_at) "
    "FROM record CROSS JOIN lexical ON lexical.key = record.key WHERE record.key BETWEEN ? AND ?"
)
"""The columns of `Entries` for a range of keys, in key order and as one row: 10,000 rows would take twice as long."""
_NAME_BYTES: Final = 6 * MAX_KEY_CHARS + 3
"""Most bytes of a session or an author in a JSON array."""
_TERM_SIZES: Final = "SELECT key AS record, length(terms) AS size FROM lexical WHERE key BETWEEN ? AND ?"
_VECTOR_SIZES: Final = "SELECT record, length(vector) AS size FROM chunk WHERE record BETWEEN ? AND ?"
_VECTORS: Final = (
    "SELECT group_concat(record), CAST(group_concat(vector, '') AS BLOB) "
    "FROM chunk WHERE record BETWEEN ? AND ? AND vector IS NOT NULL"
)


@dataclass(slots=True)
class _Followed:
    owner_index: OwnerIndex
    allowed: MatchingRows
    owner: Owner
    """The row of the owner in the state that the index has."""
    counted: int = 0
    """The bytes of this index that are included in the total."""

    @property
    def nbytes(self) -> int:
        return self.owner_index.nbytes + self.allowed.nbytes

    def changes(self, owner: Owner) -> int:
        """The number of records and changes since then."""
        return owner.next - self.owner.next + owner.version - self.owner.version


class OwnerIndexes:
    """An LRU cache of owner indexes, each validated against the owner's row on every use.

    Args:
        max_bytes: Most bytes of all indexes together; the index being searched is always kept.
    """

    def __init__(self, fingerprint: Fingerprint | None, max_bytes: int) -> None:
        self._fingerprint = fingerprint
        self._dimensions = None if fingerprint is None else fingerprint.dimensions
        self.max_bytes = max_bytes
        self._followed: OrderedDict[int, _Followed] = OrderedDict()
        self._bytes = 0

    def of(self, db: sqlite3.Connection, reached: Reached, where: Where) -> OwnerIndex:
        """The index of these owners together, up to date with this read transaction; with what was left, if conditions
        ask for that.

        Raises:
            FingerprintError: The file was re-embedded with another embedder.
        """
        self._bring_up_to_date(db, reached)
        parts = [self._followed[owner.id].owner_index for owner, _ in reached]
        return joined(parts if where.left is False else [part.with_left() for part in parts])

    def _bring_up_to_date(self, db: sqlite3.Connection, reached: Reached) -> None:
        for owner, _ in reached:
            self._follow(db, owner)
        self._evict(reached)

    def _follow(self, db: sqlite3.Connection, owner: Owner) -> None:
        followed = self._followed.get(owner.id)
        if self._fingerprint is not None and (followed is None or owner.version != followed.owner.version):
            check_fingerprint(db, self._fingerprint)
        if followed is None or not self._catch_up(db, owner, followed):
            self._replace(owner, self._load(db, owner))
        self._followed.move_to_end(owner.id)

    def missing(self, db: sqlite3.Connection, reached: Reached, where: Where) -> Missing | None:
        """A long read that the search needs first: the indexes of many records, or the rows that match the conditions.

        Await it on the core loop, then call its result in the search thread.
        """
        new = {owner.id: self._new_records(owner) for owner, _ in reached}
        if sum(new.values()) > LONG_LOAD:
            return partial(self._load_apart, [scope for owner, scope in reached if new[owner.id]])
        self._bring_up_to_date(db, reached)
        selective = [(owner, scope) for owner, scope in reached if _is_selective([scope], where)]
        each = [(self._followed[owner.id].allowed, owner, scope) for owner, scope in selective]
        lookups = [(allowed, allowed.to_look_up(owner.id, scope, where)) for allowed, owner, scope in each]
        wanted = [(allowed, lookup) for allowed, lookup in lookups if lookup is not None]
        return partial(_look_up, wanted) if wanted else None

    def _new_records(self, owner: Owner) -> int:
        followed = self._followed.get(owner.id)
        return owner.next - (0 if followed is None else followed.owner.next)

    async def _load_apart(self, scopes: Sequence[Scope], readers: Readers) -> Callable[[], None]:
        return await (await readers.long()).run(partial(self._loaded, scopes))

    def _loaded(self, scopes: Sequence[Scope], db: sqlite3.Connection) -> Callable[[], None]:
        with snapshot(db):
            owners = [owner for owner, _ in find_all(db, scopes)]  # some may have been erased since then
            if self._fingerprint is not None:
                check_fingerprint(db, self._fingerprint)
            loaded = [(owner, self._load(db, owner)) for owner in owners]
        return lambda: self._adopt(loaded)

    def _adopt(self, loaded: Iterable[tuple[Owner, OwnerIndex]]) -> None:
        for owner, owner_index in loaded:
            if self._new_records(owner) > 0:
                self._replace(owner, owner_index)

    def is_ready(self, reached: Reached, request: SearchRequest) -> bool:
        """True if this search has almost nothing to load and few rows to rank."""
        where = request.where
        known = [(self._followed.get(owner.id), owner, scope) for owner, scope in reached]
        each = [(followed, owner, scope) for followed, owner, scope in known if followed is not None]
        if len(each) < len(known) or sum(one.changes(owner) for one, owner, _ in each) > READY_CHANGES:
            return False
        size = sum(len(one.owner_index) for one, _, _ in each)
        if not _is_selective((scope for _, scope in reached), where):
            return size <= READY_ROWS

        def knows_few(most: int) -> bool:
            return all(one.allowed.knows_few(owner.id, scope, where, most, READY_CHANGES) for one, owner, scope in each)

        if not has_few_values(where):
            return False
        if size <= READY_ROWS:
            return not needs_python(where) or knows_few(size)
        # `rank` reads only the allowed rows of a large index if vectors alone decide.
        alone = len(each) == 1 and request.mode == "vector" and not request.importance
        return alone and knows_few(min(READY_ROWS, (size - 1) // WORTH_GATHERING))

    def allowed(
        self, db: sqlite3.Connection, reached: Reached, where: Where, left_out: Sequence[Where] = ()
    ) -> RowNumbers | None:
        """The rows that satisfy the conditions, ascending, of the index last returned by `of`; `None` if they exclude
        no active record. See `MatchingRows.rows`.

        Args:
            left_out: Conditions of which none may be true; indexes answer each of them.
        """
        hides = any(owner.hides for owner, _ in reached)
        if not hides and not left_out and not _is_selective((scope for _, scope in reached), where):
            return None
        parts: list[RowNumbers] = []
        first = 0
        for owner, scope in reached:
            followed = self._followed[owner.id]
            is_bounded = _is_selective([scope], where)
            rows = followed.allowed.rows(db, owner.id, scope, where) if is_bounded else _active(followed.owner_index)
            for one in left_out:
                found = followed.allowed.looked_up(db, owner.id, scope, one)
                rows = np.setdiff1d(rows, found, assume_unique=True)
            if owner.hides:
                rows = np.setdiff1d(rows, _hidden(db, followed.owner_index, owner.id), assume_unique=True)
            parts.append(rows + np.int32(first))
            first += len(followed.owner_index)
        return np.concatenate(parts)

    def importances(self, db: sqlite3.Connection, reached: Reached) -> NDArray[np.float32]:
        """The importance of each row of the index last returned by `of`."""
        return np.concatenate(
            [_importances(db, self._followed[owner.id].owner_index, owner.id) for owner, _ in reached]
        )

    def forget(self, owner: int) -> None:
        """Remove an owner's index from the cache."""
        gone = self._followed.pop(owner, None)
        if gone is not None:
            self._bytes -= gone.counted

    def drop(self, db: sqlite3.Connection, scopes: Sequence[Scope]) -> None:
        """Remove the indexes of these owners from the cache."""
        for owner, _ in find_all(db, scopes):
            self.forget(owner.id)

    def _replace(self, owner: Owner, owner_index: OwnerIndex) -> None:
        self.forget(owner.id)
        self._followed[owner.id] = _Followed(owner_index, MatchingRows(owner_index), owner)

    def _load(self, db: sqlite3.Connection, owner: Owner) -> OwnerIndex:
        owner_index = OwnerIndex(self._dimensions)
        first = owner.id << OWNER_BITS
        self._read(db, owner_index, first, first | owner.next)
        return owner_index

    def _catch_up(self, db: sqlite3.Connection, now: Owner, followed: _Followed) -> bool:
        """Apply the changes since the last use; `False` if they are no longer recorded, or a reload is cheaper."""
        owner_index, then = followed.owner_index, followed.owner
        if owner_index.removed > 64 + len(owner_index) // 4:  # a quarter of each scan would be wasted
            return False
        if now.version != then.version:
            rows = db.execute(
                "SELECT version, key FROM outbox WHERE owner = ? AND version > ?", (now.id, then.version)
            ).fetchall()
            if len({version for version, _ in rows}) != now.version - then.version:
                return False  # the outbox was trimmed in between
            with explaining("the list of changes"):
                keys = sorted({int(key) for _, key in rows})
            self._reread(db, owner_index, keys, now.id << OWNER_BITS | then.next)
        if now.next != then.next:
            first = now.id << OWNER_BITS
            self._read(db, owner_index, first | then.next, first | now.next)
        followed.owner = now
        return True

    def _reread(self, db: sqlite3.Connection, owner_index: OwnerIndex, keys: list[int], appended: int) -> None:
        """Replace the rows of these keys, except keys from `appended` on, which are read with the appends."""
        owner_index.remove(keys)
        older = f"[{','.join(str(key) for key in keys if key < appended)}]"
        kept = db.execute("SELECT key FROM record WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key", (older,))
        for (key,) in kept.fetchall():
            self._read(db, owner_index, key, key)

    def _read(self, db: sqlite3.Connection, owner_index: OwnerIndex, first: int, last: int) -> None:
        """Append the records of a range of keys."""
        with explaining("the search terms and vectors of the records"):
            self._append(db, owner_index, first, last)

    def _append(self, db: sqlite3.Connection, owner_index: OwnerIndex, first: int, last: int) -> None:
        longest = longest_value(db)
        parts = (
            db.execute(_ENTRIES, part).fetchone()
            for some in _parts(first, last, max(1, longest // _NAME_BYTES))
            for part in _parts_by_size(db, _TERM_SIZES, some, longest)
        )
        entries = _entries([part for part in parts if part[0] is not None])
        if entries is None:
            return
        vectors: Iterable[tuple[list[int], Floats]] = ()
        if (size := self._dimensions) is not None:
            found = (
                db.execute(_VECTORS, part).fetchone()
                for some in _parts(first, last, AT_ONCE)
                for part in _parts_by_size(db, _VECTOR_SIZES, some, longest)
            )
            vectors = ((_numbers(keys).tolist(), from_halves(blob, size)) for keys, blob in found if keys is not None)
        owner_index.extend_by_columns(entries, vectors)

    def _evict(self, used: Reached) -> None:
        """Drop the least recently used indexes until the rest fits; those that were just used are kept."""
        for owner, _ in used:
            followed = self._followed[owner.id]
            size = followed.nbytes
            self._bytes += size - followed.counted
            followed.counted = size
        while self._bytes > self.max_bytes and len(self._followed) > len(used):
            _, oldest = self._followed.popitem(last=False)
            self._bytes -= oldest.counted


def _is_selective(scopes: Iterable[Scope], where: Where) -> bool:
    """True if scopes and conditions exclude any active, unexpired record of their owners."""
    has_conditions = where is not EVERYTHING and where != EVERYTHING
    return has_conditions or any(scope.agent or scope.session or scope.collection for scope in scopes)


def _active(owner_index: OwnerIndex) -> RowNumbers:
    """The rows of active records."""
    return np.flatnonzero(owner_index.active.values).astype(np.int32)


def _hidden(db: sqlite3.Connection, owner_index: OwnerIndex, owner: int) -> RowNumbers:
    """The rows of hidden records."""
    keys = db.execute("SELECT key FROM hidden WHERE key BETWEEN ? AND ?", owner_range(owner)).fetchall()
    return np.array([owner_index.row_of[key] for (key,) in keys if key in owner_index.row_of], np.int32)


def _importances(db: sqlite3.Connection, owner_index: OwnerIndex, owner: int) -> NDArray[np.float32]:
    found = np.zeros(len(owner_index), np.float32)
    rows = db.execute("SELECT key, importance FROM record WHERE key BETWEEN ? AND ?", owner_range(owner))
    with explaining("the importance of a record"):
        for key, importance in rows:
            if (row := owner_index.row_of.get(key)) is None:
                raise StaleIndexError
            found[row] = importance
    return found


async def _look_up(wanted: Sequence[tuple[MatchingRows, Lookup]], readers: Readers) -> Callable[[], None]:
    found = [(allowed, lookup, await lookup.keys(readers)) for allowed, lookup in wanted]

    def cache() -> None:
        for allowed, lookup, keys in found:
            allowed.cache(lookup, keys)

    return cache


def _parts(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size - 1, last)) for start in range(first, last + 1, size))


def _parts_by_size(
    db: sqlite3.Connection, sizes: str, keys: tuple[int, int], longest: int
) -> Iterator[tuple[int, int]]:
    """The range of keys in parts whose values have at most `longest` bytes together; a single record may have more."""
    start, last = keys
    if start < last and db.execute(f"SELECT total(size) FROM ({sizes})", keys).fetchone()[0] > longest:
        together = 0
        for key, size in db.execute(f"SELECT record, total(size) FROM ({sizes}) GROUP BY record ORDER BY record", keys):
            if together and together + size > longest:
                yield start, key - 1
                start, together = key, 0
            together += size
    yield start, last


def _numbers(listed: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = np.fromstring(listed, np.int64, sep=",")
    return numbers


def _entries(parts: Sequence[tuple[Any, ...]]) -> Entries | None:
    """The entries in rows of `_ENTRIES`; `None` without rows."""
    if not parts:
        return None
    columns = list(zip(*parts, strict=True))
    keys, flags, words, occurred, offsets, active, left, sizes = (
        _numbers(",".join(column)) for column in columns[: len(_NUMBERS)]
    )
    sessions, authors, expires = ([one for part in column for one in json.loads(part)] for column in columns[-3:])
    terms = b"".join(columns[-4])
    last = active.astype(np.bool_), offsets, left.astype(np.bool_)
    return Entries(keys, terms, sizes, flags, words, sessions, authors, occurred, expires, *last)


MAX_OWNERS: Final = 4_096
_Names = tuple[tuple[str, str | None], ...]


class KnownNames:
    """Remembers which query words were names, for recently searched owners."""

    def __init__(self) -> None:
        self._names: OrderedDict[_Names, frozenset[str]] = OrderedDict()

    def guess(self, scopes: Sequence[Scope], words: frozenset[str]) -> frozenset[str]:
        """The words that were names in the last search of these owners that used them."""
        return words & self._names.get(_key(scopes), frozenset())

    def correct(self, scopes: Sequence[Scope], words: frozenset[str], names: frozenset[str]) -> None:
        """Store that of `words` exactly `names` are names."""
        key = _key(scopes)
        self._names[key] = (self._names.get(key, frozenset()) - words) | names
        self._names.move_to_end(key)
        if len(self._names) > MAX_OWNERS:
            self._names.popitem(last=False)


def _key(scopes: Sequence[Scope]) -> _Names:
    return tuple((scope.app, scope.user) for scope in scopes)
