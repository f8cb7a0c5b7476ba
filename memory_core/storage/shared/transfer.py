"""The protocol with which a store exports and imports records unchanged.

`memory_core.transfer` uses it to copy and compare.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from hashlib import blake2b, sha256
from typing import Any, Protocol, cast

from memory_core.models import DERIVING, Fingerprint, Link, MemoryRecord, Scope
from memory_core.records.size import bytes_of
from memory_core.values.json_text import encode_json

Revision = tuple[int, str, datetime]
"""An earlier text of a record: rev, text, and when the next one replaced it."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A record with everything that cannot be recomputed."""

    record: MemoryRecord
    seq: int
    """Its position in the order of arrival at its store."""
    revisions: tuple[Revision, ...]
    """Oldest first."""
    vectors: tuple[bytes, ...] = ()
    """Rows of float16, one for each piece of the text; empty while they are pending."""

    @property
    def size(self) -> int:
        """About the bytes that it takes."""
        return bytes_of(self.record) + sum(len(text) for _, text, _ in self.revisions) + sum(map(len, self.vectors))

    def without_vectors(self) -> Carried:
        """The same, with pending vectors."""
        return replace(self, vectors=())

    def digest(self) -> bytes:
        """Equal for two records if and only if callers cannot distinguish them; vectors and arrival do not count."""
        values = [_plain(getattr(self.record, name)) for name in _FIELDS]
        earlier = [[rev, text, until.isoformat()] for rev, text, until in self.revisions]
        return blake2b(encode_json([values, earlier]).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as a manifest lists it."""

    id: str
    seq: int
    digest: bytes
    has_vectors: bool
    sources: frozenset[str] = frozenset()
    """The ids of the records of whose words it was made."""


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The forgotten source keys of a store, as keyed hashes from which no source key can be read."""

    secret: bytes
    digests: frozenset[bytes]


def tombstone(secret: bytes, owner: Scope, source_key: str) -> bytes:
    """The keyed hash of an owner's source key, from which nobody can read it: the same in every store of this secret.

    Source keys contain no NUL, so no two names are equal.
    """
    return hmac.digest(secret, f"{len(owner.app)}:{owner.app}{owner.user}\0{source_key}".encode(), sha256)[:16]


class Copyable(Protocol):
    """A store, for exporting and importing records. Expired records are included; nothing counts as a read."""

    async def owners(self) -> list[Scope]:
        """Every owner that has records."""
        ...

    async def manifest(self, scope: Scope) -> list[Entry]:
        """All records of an owner, by arrival."""
        ...

    async def take(self, scope: Scope, ids: Collection[str]) -> list[Carried]:
        """These records of an owner, by arrival; deleted ones are left out."""
        ...

    async def restore(self, scope: Scope, items: Sequence[Carried], *, remove: Collection[str] = ()) -> None:
        """Delete the ids in `remove`, then write the items unchanged, over records with the same ids; idempotent.

        New records arrive in the given order.
        """
        ...

    async def fingerprint(self) -> Fingerprint | None:
        """The fingerprint of its vectors."""
        ...

    async def tombstones(self) -> Tombstones:
        """The forgotten source keys."""
        ...

    async def adopt(self, tombstones: Tombstones) -> None:
        """Store these with their secret, which marks this store as a copy of their store; idempotent."""
        ...


def sources_of(record: MemoryRecord) -> frozenset[str]:
    """For `Entry.sources`."""
    return frozenset(link.id for link in record.links if link.relation in DERIVING)


def sourceless(manifest: Sequence[Entry]) -> int:
    """The number of records of an owner that were made of the words of others, of which one is not among them: it
    has expired, say."""
    ids = {entry.id for entry in manifest}
    return sum(not entry.sources <= ids for entry in manifest)


def checksum(manifest: Iterable[Entry]) -> str:
    """A short digest of all records of an owner: equal if and only if all of them are equal."""
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
        return [
            [getattr(item, each.name) for each in fields(Link)] if isinstance(item, Link) else item for item in items
        ]
    return value
