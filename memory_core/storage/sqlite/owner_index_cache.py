"""Cache the indexes of recently searched owners and keep them up to date with the file.

Runs in the thread of a connection, inside a read transaction: a search sees one state of the file, whichever process
wrote it. One search at a time uses the index of an owner (`Readers`).
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Fingerprint, Scope
from memory_core.records.fields import OFFSET
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.retrieval.arrays import Floats
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER
from memory_core.retrieval.owner_index import AT_ONCE, Entries, OwnerIndex
from memory_core.retrieval.unit_vectors import from_halves
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.matching_rows import MatchingRows
from memory_core.storage.sqlite.meta import check_fingerprint
from memory_core.storage.sqlite.one_value import longest_value
from memory_core.storage.sqlite.owners import Owner, Reached
from memory_core.storage.sqlite.reached_indexes import Part, ReachedIndexes
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.values.limits import MAX_KEY_CHARS

READY_ROWS: Final = 2_048
"""Most records that are ranked in less than a millisecond once their index is loaded."""
READY_CHANGES: Final = 16
"""Most new records that can be read in addition within that time."""

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
    matching: MatchingRows
    owner: Owner
    """The row of the owner in the state that the index has."""
    counted: int = 0
    """The bytes of this index that are included in the total."""

    @property
    def nbytes(self) -> int:
        return self.owner_index.nbytes + self.matching.nbytes


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
        self._lock = threading.Lock()
        """Locked while the cache is read or changed; searches of different owners run at the same time."""

    def of(self, db: sqlite3.Connection, reached: Reached) -> ReachedIndexes:
        """The indexes of these owners, up to date with this read transaction.

        Raises:
            FingerprintError: The file was re-embedded with another embedder.
        """
        used = [(owner, scope, self._up_to_date(db, owner)) for owner, scope in reached]
        self._evict([followed for _, _, followed in used])
        parts = [Part(owner, scope, followed.owner_index, followed.matching) for owner, scope, followed in used]
        return ReachedIndexes(db, parts)

    def is_ready(self, reached: Reached) -> bool:
        """True if the indexes of these owners are loaded and small, and almost nothing is new."""
        with self._lock:
            known = [(self._followed.get(owner.id), owner) for owner, _ in reached]
        each = [(followed, owner) for followed, owner in known if followed is not None]
        changes = sum(now.next - one.owner.next + now.version - one.owner.version for one, now in each)
        size = sum(len(one.owner_index) for one, _ in each)
        return len(each) == len(known) and changes <= READY_CHANGES and size <= READY_ROWS

    def _up_to_date(self, db: sqlite3.Connection, owner: Owner) -> _Followed:
        with self._lock:
            followed = self._followed.get(owner.id)
        if self._fingerprint is not None and (followed is None or owner.version != followed.owner.version):
            check_fingerprint(db, self._fingerprint)
        try:
            if followed is None or not self._catch_up(db, owner, followed):
                owner_index = self._load(db, owner)
                followed = _Followed(owner_index, MatchingRows(owner_index), owner)
        except BaseException:  # a value that is damaged, or for which there is no memory, leaves columns unequally long
            self.forget(owner.id)
            raise
        return followed

    def forget(self, owner: int) -> None:
        """Remove an owner's index from the cache, when no search uses it."""
        with self._lock:
            self._forget(owner)

    def _forget(self, owner: int) -> None:
        gone = self._followed.pop(owner, None)
        self._bytes -= 0 if gone is None else gone.counted

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

    def _evict(self, used: Sequence[_Followed]) -> None:
        """Keep what was just used, and drop the least recently used indexes until the rest fits.

        Another search may go on with an index that is dropped here.
        """
        with self._lock:
            for followed in used:
                self._forget(followed.owner.id)
                self._followed[followed.owner.id] = followed
                followed.counted = followed.nbytes
                self._bytes += followed.counted
            while self._bytes > self.max_bytes and len(self._followed) > len(used):
                self._forget(next(iter(self._followed)))


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
MAX_NAMES: Final = 100
"""Names of each; somebody could write under ever new ones, ask for them and delete what was written."""
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
        kept = (self._names.get(key, frozenset()) - words) | names
        self._names[key] = kept if len(kept) <= MAX_NAMES else names
        self._names.move_to_end(key)
        if len(self._names) > MAX_OWNERS:
            self._names.popitem(last=False)


def _key(scopes: Sequence[Scope]) -> _Names:
    return tuple((scope.app, scope.user) for scope in scopes)
