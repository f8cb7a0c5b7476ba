"""The ledger, a collection next to the records: description of the store, forgotten source keys, running writes.

A write that concerns several points is written completely to its journal here first; from then on it takes effect even
if this process dies: any process that finds the journal applies it (again), which is idempotent.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final

from memory_core.errors import FingerprintError, NewerStoreError, StorageError
from memory_core.models import Fingerprint, Scope, utc_now
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import named_id, owner_key, stamp
from memory_core.storage.qdrant.collection import PAGE, Points
from memory_core.storage.qdrant.schema import FORMAT
from memory_core.storage.qdrant.where import all_of, empty, same
from memory_core.storage.shared.transfer import Position, Tombstones

_STORE: Final = named_id("store")
_PROBE: Final = named_id("probe")
PIECE_CHARS: Final = 4_000_000
"""Size of a piece of a journal in one point; servers accept requests of 32 MB by default."""

GRACE: Final = timedelta(minutes=3)
"""A journal older than this belongs to a dead process: a live one has finished or given up long before."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of the store."""

    secret: bytes
    """The key of the hashes of forgotten source keys."""
    records: str
    """The collection of the records."""
    fingerprint: Fingerprint | None
    """The fingerprint of its vectors, if it has any."""


@dataclass(frozen=True, slots=True)
class Journal:
    """A journaled write."""

    id: str
    text: str | None
    """`Changes.to_json`; `None` if its writer died before it was complete, so that none of it may be applied."""


class Ledger:
    """Reads and writes the ledger."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._secret = b""

    async def insist_on_known_format(self) -> None:
        """Refuse a store of a newer library version with `NewerStoreError`, before anything is written to it."""
        entry = await self._stored()
        if entry is not None and entry["format"] > FORMAT:
            raise NewerStoreError(
                f"the store {self._points.name!r} was written by a newer version of memory-core "
                f"(format {entry['format']}, this version knows {FORMAT}); upgrade memory-core to open it, or give "
                "another collection name"
            )

    async def claim(self, records: str, fingerprint: Fingerprint | None) -> Description:
        """The description of the store, created if missing; if it has no fingerprint, `fingerprint` is stored.

        Raises:
            FingerprintError: Its vectors were made by another embedder.
        """
        entry = await self._stored()
        if entry is None:
            fresh = {"kind": "store", "format": FORMAT, "secret": secrets.token_hex(32), "records": records}
            await self._points.write(self._points.insert([_point(_STORE, {**fresh, "fingerprint": None})]))
            entry = await self._stored() or {}
        if entry["fingerprint"] is None and fingerprint is not None:
            adopted = _point(_STORE, {**entry, "fingerprint": asdict(fingerprint)})
            await self._points.write(self._points.rewrite([adopted], all_of(empty("fingerprint"))))
            entry = await self._stored() or {}
        found = None if entry["fingerprint"] is None else Fingerprint(**entry["fingerprint"])
        if found is not None and fingerprint is not None and found != fingerprint:
            raise FingerprintError(
                f"the vectors in {entry['records']!r} were made by {found.name} {found.revision} "
                f"({found.dimensions} dimensions), not by {fingerprint.name} {fingerprint.revision} "
                f"({fingerprint.dimensions}); open it with that embedder, or copy the records to a new store"
            )
        self._secret = bytes.fromhex(entry["secret"])
        return Description(self._secret, entry["records"], found)

    async def probe(self) -> None:
        """Make sure that the server honours conditions on writes; old servers ignore them silently.

        Raises:
            StorageError: It ignores them, so concurrent writers would overwrite each other.
        """
        unmatched = all_of(same("state", "none"))
        await self._points.write(
            self._points.insert([_point(_PROBE, {"kind": "probe", "state": "first"})]),
            self._points.insert([_point(_PROBE, {"kind": "probe", "state": "second"})]),
            self._points.rewrite([_point(_PROBE, {"kind": "probe", "state": "third"})], unmatched),
        )
        (found,) = await self._points.read([_PROBE])
        if (found.payload or {}).get("state") != "first":
            raise StorageError(
                "this Qdrant server ignores update_mode and update_filter, with which writers detect each other; "
                "upgrade it"
            )

    def tombstone(self, scope: Scope, source_key: str) -> str:
        """The point of a forgotten source key: a keyed hash that does not reveal it."""
        name = f"{owner_key(scope)}\0{source_key}"
        return str(uuid.UUID(bytes=hmac.digest(self._secret, name.encode(), hashlib.sha256)[:16]))

    async def forgotten(self, scope: Scope, source_keys: Iterable[str]) -> set[str]:
        """The forgotten ones among the source keys."""
        keys = {self.tombstone(scope, key): key for key in source_keys}
        return {keys[str(found.id)] for found in await self._points.read(list(keys), fields=False)}

    async def bury(self, tombstones: Sequence[str]) -> None:
        """Store tombstones of forgotten source keys."""
        for start in range(0, len(tombstones), PAGE):
            some = [_point(tombstone, {"kind": "tombstone"}) for tombstone in tombstones[start : start + PAGE]]
            await self._points.write(self._points.insert(some))

    async def tombstones(self) -> Tombstones:
        """All of them."""
        found = await self._points.all(all_of(same("kind", "tombstone")), fields=False)
        return Tombstones(self._secret, frozenset(uuid.UUID(str(record.id)).bytes for record in found))

    async def adopt(self, tombstones: Tombstones) -> None:
        """Store those of another store with its secret; no other process may have this store open."""
        entry = await self._stored() or {}
        await self._points.write(self._points.put([_point(_STORE, {**entry, "secret": tombstones.secret.hex()})]))
        self._secret = tombstones.secret
        await self.bury([str(uuid.UUID(bytes=digest)) for digest in tombstones.digests])

    async def positions(self) -> dict[Scope, Position]:
        """The position of this mirror for each owner of a file."""
        found = await self._points.all(all_of(same("kind", "mirror")))
        return {
            Scope(entry["app"], entry["user"]): Position(*entry["position"])
            for record in found
            if (entry := record.payload)
        }

    async def note_position(self, scope: Scope, position: Position | None) -> None:
        """Store the position of this mirror for an owner; `None` removes it."""
        point = named_id(f"mirror\0{owner_key(scope)}")
        if position is None:
            await self._points.write(self._points.delete_points([point]))
            return
        numbers = [position.owner, position.next, position.version]
        payload = {"kind": "mirror", "app": scope.app, "user": scope.user, "position": numbers}
        await self._points.write(self._points.put([_point(point, payload)]))

    async def put_down(self, journal: str, text: str) -> None:
        """Write a journal; once this returns, its write will take effect.

        The last piece makes it complete, and each piece is one point, so there is no intermediate state.
        """
        pieces = [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]
        at = stamp(utc_now())
        for n, piece in enumerate(pieces):
            payload = {"kind": "journal", "journal": journal, "n": n, "of": len(pieces), "at": at, "text": piece}
            await self._points.write(self._points.insert([_point(named_id(f"journal\0{journal}\0{n}"), payload)]))

    async def strike(self, journal: str) -> None:
        """Delete the journal of a write that was applied, or that never became complete."""
        await self._points.write(self._points.delete(all_of(same("journal", journal))))

    async def abandoned(self) -> tuple[list[Journal], bool]:
        """The writes whose writers are dead, oldest first; and whether there are younger ones to check later."""
        pieces: dict[str, list[dict[str, Any]]] = {}
        for record in await self._points.all(all_of(same("kind", "journal"))):
            payload = record.payload or {}
            pieces.setdefault(payload["journal"], []).append(payload)
        oldest_alive = stamp(utc_now() - GRACE)
        old = {
            journal: parts for journal, parts in pieces.items() if min(piece["at"] for piece in parts) < oldest_alive
        }
        found = [
            Journal(journal, "".join(piece["text"] for piece in sorted(parts, key=lambda piece: piece["n"])))
            if len(parts) == parts[0]["of"]
            else Journal(journal, None)
            for journal, parts in sorted(old.items(), key=lambda item: item[1][0]["at"])
        ]
        return found, len(old) < len(pieces)

    async def _stored(self) -> dict[str, Any] | None:
        found = await self._points.read([_STORE])
        return None if not found else found[0].payload


def _point(id: str, payload: dict[str, Any]) -> models.PointStruct:  # noqa: A002  (the client's own word)
    return models.PointStruct(id=id, payload=payload, vector={})
