"""Cache the indexes of recently searched owners and keep them up to date with the file.

Owners that are read together have an index of their own with the rows of all of them, so a record ranks as if one
owner had them all. Runs in the reader's thread, inside a read transaction: a search sees one state of the file,
whichever process wrote it.
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
from memory_core.protocols import SearchRequest
from memory_core.retrieval.dense import WORTH_GATHERING
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER, TURN
from memory_core.retrieval.owner_index import AT_ONCE, Entries, OwnerIndex
from memory_core.retrieval.unit_vectors import Floats, from_halves
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.matching_rows import Lookup, MatchingRows, Rows
from memory_core.storage.sqlite.meta import check_fingerprint
from memory_core.storage.sqlite.owners import Owner, Reached, find_all
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.storage.sqlite.transactions import snapshot
from memory_core.storage.sqlite.where import has_few_values, needs_python
from memory_core.where.value import Where

CACHE_BYTES: Final = 512 * 1024 * 1024
"""Most bytes of all cached indexes together; the index being searched is always kept."""

READY_ROWS: Final = 2_048
"""Most records that are searched in less than a millisecond once their index is loaded."""
READY_CHANGES: Final = 16
"""Most new records that can be read in addition within that time."""

LONG_LOAD: Final = 5_000
"""Most records that are loaded in less time than other searches may wait."""

Missing = Callable[[Readers], Awaitable[Callable[[], None]]]

_FLAGS: Final = f"flags | CASE role WHEN 'user' THEN {FROM_USER} WHEN 'assistant' THEN {FROM_ASSISTANT} ELSE 0 END"
_SESSION: Final = f"CASE kind WHEN '{TURN}' THEN session END"
"""See `features.is_turn`."""
_NUMBERS: Final = ("record.key", _FLAGS, "words", "occurred_at", "state = 'active'", "length(terms)")
_ENTRIES: Final = (
    f"SELECT {', '.join(f'group_concat({number})' for number in _NUMBERS)}, CAST(group_concat(terms, '') AS BLOB), "
    f"json_group_array({_SESSION}), json_group_array(author), json_group_array(expires_at) "
    "FROM record CROSS JOIN lexical ON lexical.key = record.key WHERE record.key BETWEEN ? AND ?"
)
"""The columns of `Entries` for a range of keys, in key order and as one row: 10,000 rows would take twice as long."""
_ENTRIES_AT_ONCE: Final = 1 << 18
"""Keys per row, so that no value exceeds SQLite's limit of 1 GB."""
_VECTORS: Final = (
    "SELECT group_concat(record), CAST(group_concat(vector, '') AS BLOB) "
    "FROM chunk WHERE record BETWEEN ? AND ? AND vector IS NOT NULL"
)


@dataclass(slots=True)
class _Followed:
    owner_index: OwnerIndex
    allowed: MatchingRows
    owners: tuple[Owner, ...]
    """The rows of the owners in the state that the index has."""
    counted: int = 0
    """The bytes of this index that are included in the total."""

    @property
    def nbytes(self) -> int:
        return self.owner_index.nbytes + self.allowed.nbytes

    def changes(self, owners: tuple[Owner, ...]) -> int:
        """The number of records and changes since then."""
        return sum(
            now.next - then.next + now.version - then.version for now, then in zip(owners, self.owners, strict=True)
        )


_Ids = tuple[int, ...]


class OwnerIndexes:
    """An LRU cache of owner indexes, each validated against the owners' rows on every use."""

    def __init__(self, fingerprint: Fingerprint | None, max_bytes: int = CACHE_BYTES) -> None:
        self._fingerprint = fingerprint
        self._dimensions = None if fingerprint is None else fingerprint.dimensions
        self._max_bytes = max_bytes
        self._followed: OrderedDict[_Ids, _Followed] = OrderedDict()
        self._bytes = 0

    def of(self, db: sqlite3.Connection, reached: Reached) -> OwnerIndex:
        """The index of these owners, up to date with this read transaction.

        Raises:
            FingerprintError: The file was re-embedded with another embedder.
        """
        owners, ids = _owners(reached), _ids(reached)
        followed = self._followed.get(ids)
        if self._fingerprint is not None and (followed is None or _have_changed(followed.owners, owners)):
            check_fingerprint(db, self._fingerprint)
        if followed is None or not self._catch_up(db, owners, followed):
            self._forget(ids)
            owner_index = self._load(db, owners)
            followed = self._followed[ids] = _Followed(owner_index, MatchingRows(owner_index), owners)
        self._followed.move_to_end(ids)
        self._evict(followed)
        return followed.owner_index

    def missing(self, db: sqlite3.Connection, reached: Reached, where: Where) -> Missing | None:
        """A long read that the search needs first: the index of many records, or the rows that match the conditions.

        Await it on the core loop, then call its result in the search thread.
        """
        followed = self._followed.get(_ids(reached))
        known = 0 if followed is None else sum(owner.next for owner in followed.owners)
        if sum(owner.next for owner, _ in reached) - known > LONG_LOAD:
            return partial(self._load_apart, tuple(scope for _, scope in reached))
        self.of(db, reached)
        allowed = self._followed[_ids(reached)].allowed
        for owner, scope in reached:
            lookup = allowed.to_look_up(owner.id, scope, where) if _is_selective([scope], where) else None
            if lookup is not None:
                return partial(_look_up, allowed, lookup)
        return None

    async def _load_apart(self, scopes: Sequence[Scope], readers: Readers) -> Callable[[], None]:
        return await (await readers.long()).run(partial(self._loaded, scopes))

    def _loaded(self, scopes: Sequence[Scope], db: sqlite3.Connection) -> Callable[[], None]:
        with snapshot(db):
            owners = _owners(find_all(db, scopes))  # some may have been erased since then
            if self._fingerprint is not None:
                check_fingerprint(db, self._fingerprint)
            owner_index = self._load(db, owners)
        return lambda: self._adopt(owners, owner_index)

    def _adopt(self, owners: tuple[Owner, ...], owner_index: OwnerIndex) -> None:
        ids = tuple(owner.id for owner in owners)
        known = self._followed.get(ids)
        if owners and (
            known is None or any(now.next > then.next for now, then in zip(owners, known.owners, strict=True))
        ):
            self._forget(ids)
            self._followed[ids] = _Followed(owner_index, MatchingRows(owner_index), owners)

    def is_ready(self, reached: Reached, request: SearchRequest) -> bool:
        """Whether this search has almost nothing to load and few rows to rank."""
        followed, where = self._followed.get(_ids(reached)), request.where
        if followed is None or followed.changes(_owners(reached)) > READY_CHANGES:
            return False
        size = len(followed.owner_index)
        if not _is_selective((scope for _, scope in reached), where):
            return size <= READY_ROWS

        def knows_few(most: int) -> bool:
            allowed = followed.allowed
            return all(allowed.knows_few(owner.id, scope, where, most, READY_CHANGES) for owner, scope in reached)

        if not has_few_values(where):
            return False
        if size <= READY_ROWS:
            return not needs_python(where) or knows_few(size)
        # `rank` reads only the allowed rows of a large index if vectors alone decide.
        alone = request.mode == "vector" and not request.importance
        return alone and knows_few(min(READY_ROWS, (size - 1) // WORTH_GATHERING))

    def allowed(self, db: sqlite3.Connection, reached: Reached, where: Where) -> Rows | None:
        """The rows that satisfy the conditions, ascending, of the index last returned by `of`; `None` if they exclude
        no active record. See `MatchingRows.rows`."""
        if not _is_selective((scope for _, scope in reached), where):
            return None
        followed = self._followed[_ids(reached)]
        parts = [
            followed.allowed.rows(db, owner.id, scope, where)
            if _is_selective([scope], where)
            else _rows_of(followed.owner_index, owner.id)
            for owner, scope in reached
        ]
        return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))

    def forget(self, owner: int) -> None:
        """Remove the indexes with an owner's records from the cache."""
        for ids in [ids for ids in self._followed if owner in ids]:
            self._forget(ids)

    def _forget(self, ids: _Ids) -> None:
        gone = self._followed.pop(ids, None)
        if gone is not None:
            self._bytes -= gone.counted

    def _load(self, db: sqlite3.Connection, owners: tuple[Owner, ...]) -> OwnerIndex:
        owner_index = OwnerIndex(self._dimensions)
        for owner in owners:
            first = owner.id << OWNER_BITS
            self._read(db, owner_index, first, first | owner.next)
        return owner_index

    def _catch_up(self, db: sqlite3.Connection, owners: tuple[Owner, ...], followed: _Followed) -> bool:
        """Apply the changes since the last use; `False` if they are no longer recorded, or a reload is cheaper."""
        owner_index = followed.owner_index
        if owner_index.dead > 64 + len(owner_index) // 4:  # a quarter of each scan would be wasted
            return False
        if not all(self._follow(db, owner_index, then, now) for then, now in zip(followed.owners, owners, strict=True)):
            return False
        followed.owners = owners
        return True

    def _follow(self, db: sqlite3.Connection, owner_index: OwnerIndex, then: Owner, now: Owner) -> bool:
        """Apply the changes of one owner; `False` if they are no longer recorded."""
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
        return True

    def _reread(self, db: sqlite3.Connection, owner_index: OwnerIndex, keys: list[int], appended: int) -> None:
        """Replace the rows of these keys, except keys from `appended` on, which are read with the appends."""
        owner_index.remove(keys)
        for key in keys:
            if key < appended:
                self._read(db, owner_index, key, key)

    def _read(self, db: sqlite3.Connection, owner_index: OwnerIndex, first: int, last: int) -> None:
        """Append the records of a range of keys."""
        with explaining("the search terms and vectors of the records"):
            self._append(db, owner_index, first, last)

    def _append(self, db: sqlite3.Connection, owner_index: OwnerIndex, first: int, last: int) -> None:
        parts = [db.execute(_ENTRIES, part).fetchone() for part in _parts(first, last, _ENTRIES_AT_ONCE)]
        entries = _entries([part for part in parts if part[0] is not None])
        if entries is None:
            return
        vectors: Iterable[tuple[list[int], Floats]] = ()
        if (size := self._dimensions) is not None:
            found = (db.execute(_VECTORS, part).fetchone() for part in _parts(first, last, AT_ONCE))
            vectors = ((_numbers(keys).tolist(), from_halves(blob, size)) for keys, blob in found if keys is not None)
        owner_index.extend_by_columns(entries, vectors)

    def _evict(self, used: _Followed) -> None:
        """Drop the least recently used indexes until the rest fits; `used` was the last to grow."""
        size = used.nbytes
        self._bytes += size - used.counted
        used.counted = size
        while self._bytes > self._max_bytes and len(self._followed) > 1:
            _, oldest = self._followed.popitem(last=False)
            self._bytes -= oldest.counted


def _owners(reached: Reached) -> tuple[Owner, ...]:
    return tuple(owner for owner, _ in reached)


def _ids(reached: Reached) -> _Ids:
    return tuple(owner.id for owner, _ in reached)


def _have_changed(then: tuple[Owner, ...], now: tuple[Owner, ...]) -> bool:
    """Whether any owner has changes other than appends."""
    return any(one.version != other.version for one, other in zip(then, now, strict=True))


def _is_selective(scopes: Iterable[Scope], where: Where) -> bool:
    """Whether scopes and conditions exclude any active, unexpired record of their owners."""
    return where != Where() or any(scope.agent or scope.session or scope.collection for scope in scopes)


def _rows_of(owner_index: OwnerIndex, owner: int) -> Rows:
    """The rows of an owner's active records."""
    is_owners = (owner_index.keys.values >> OWNER_BITS == owner) & owner_index.active.values
    return np.flatnonzero(is_owners).astype(np.int32)


async def _look_up(allowed: MatchingRows, lookup: Lookup, readers: Readers) -> Callable[[], None]:
    keys = await lookup.keys(readers)
    return lambda: allowed.cache(lookup, keys)


def _parts(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size - 1, last)) for start in range(first, last + 1, size))


def _numbers(listed: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = np.fromstring(listed, np.int64, sep=",")
    return numbers


def _entries(parts: Sequence[tuple[Any, ...]]) -> Entries | None:
    """The entries in rows of `_ENTRIES`; `None` without rows."""
    if not parts:
        return None
    columns = list(zip(*parts, strict=True))
    keys, flags, words, occurred, active, lengths = (_numbers(",".join(column)) for column in columns[: len(_NUMBERS)])
    terms, ends = b"".join(columns[-4]), np.cumsum(lengths).tolist()
    sessions, authors, expires = ([one for part in column for one in json.loads(part)] for column in columns[-3:])
    texts = [terms[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return Entries(keys, texts, flags, words, sessions, authors, occurred, expires, active.astype(np.bool_))


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
