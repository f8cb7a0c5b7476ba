"""Carrying records from one store to another exactly as they are: what a store has to offer for that.

`memory_core.transfer` copies and compares with it, and a mirror is fed with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Protocol, cast

from memory_core.encoding import encode_json
from memory_core.models import Fingerprint, Link, MemoryRecord, Scope

Revision = tuple[int, str, datetime]
"""A text a record had before: rev, text, and when the next one took its place."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A record with everything that cannot be computed anew."""

    record: MemoryRecord
    seq: int
    """Its place in the order of arrival at its store."""
    revisions: tuple[Revision, ...]
    """Oldest first."""
    vectors: tuple[bytes, ...] = ()
    """Rows of float16, one for each piece of the text; none while they are owed."""

    def without_vectors(self) -> Carried:
        """The same, with vectors owed."""
        return replace(self, vectors=())

    def digest(self) -> bytes:
        """The same for two records if and only if a caller cannot tell them apart; vectors and arrival do not count."""
        held = [_plain(getattr(self.record, name)) for name in _FIELDS]
        earlier = [[rev, text, until.isoformat()] for rev, text, until in self.revisions]
        return blake2b(encode_json([held, earlier]).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as a manifest lists it."""

    id: str
    seq: int
    digest: bytes
    session: str | None
    occurred_at: datetime
    has_vectors: bool

    @classmethod
    def of(cls, item: Carried, *, has_vectors: bool) -> Entry:
        record = item.record
        return cls(record.id, item.seq, item.digest(), record.session, record.occurred_at, has_vectors)


@dataclass(frozen=True, slots=True)
class Tombstones:
    """What a store remembers of forgotten source keys: nothing that can be read without the key, nor with it."""

    secret: bytes
    digests: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a mirror has followed an owner of a file."""

    owner: int
    """The owner's number: one that was erased and comes back has another."""
    next: int
    """The seq of its next record."""
    version: int
    """Counts the changes that are no appends."""


class Portable(Protocol):
    """A store seen by whoever carries records in or out. Expired records count; nothing is counted as a read."""

    async def owners(self) -> list[Scope]:
        """Every owner that has records."""
        ...

    async def manifest(self, scope: Scope) -> list[Entry]:
        """All records of an owner, by arrival."""
        ...

    async def take(self, scope: Scope, ids: Collection[str]) -> list[Carried]:
        """These records of an owner, by arrival; those that are gone are left out."""
        ...

    async def restore(self, scope: Scope, items: Sequence[Carried], *, remove: Collection[str] = ()) -> None:
        """Delete the ids in `remove`, then write the items as they are, over records of the same ids; may be repeated.

        New ones arrive in the order given. Vectors that saw a turn before them are taken as they are.
        """
        ...

    async def settle(self, scope: Scope) -> None:
        """After the last `restore` of an owner: put in order what depends on several records."""
        ...


class Copyable(Portable, Protocol):
    """A `Portable` that can become, or has become, the copy of another store."""

    async def fingerprint(self) -> Fingerprint | None:
        """Whose vectors it holds."""
        ...

    async def tombstones(self) -> Tombstones:
        """What was forgotten on purpose."""
        ...

    async def adopt(self, tombstones: Tombstones) -> None:
        """Remember these, under their secret, which marks this store as a copy of theirs; may be repeated."""
        ...


def checksum(manifest: Iterable[Entry]) -> str:
    """One short text for all records of an owner: equal if and only if all of them are."""
    total = blake2b(digest_size=16)
    for entry in sorted(manifest, key=lambda entry: entry.id):
        total.update(entry.digest)
    return total.hexdigest()


_FIELDS = tuple(field.name for field in fields(MemoryRecord))


def _plain(value: Any) -> Any:  # a field of a record
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return [[item.relation, item.id] if isinstance(item, Link) else item for item in items]
    return value
