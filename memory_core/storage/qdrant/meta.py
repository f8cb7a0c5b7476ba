"""The description of a store: one point in a small collection without texts, beside the positions of a mirror."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Final

from memory_core.encoding import encode_json
from memory_core.errors import FingerprintError, NewerStoreError, StorageError
from memory_core.models import Fingerprint, Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Payload, Point, named_id, token
from memory_core.storage.qdrant.collection import Points
from memory_core.storage.qdrant.schema import FORMAT
from memory_core.storage.qdrant.where import all_of, among, any_of, same
from memory_core.storage.shared.transfer import Position

_STORE: Final = named_id("store")
_PROBE: Final = named_id("probe")


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a store."""

    secret: bytes
    """The key of the hashes that name points (`codec.Names`)."""
    fingerprint: Fingerprint | None = None
    """The embedder of its vectors, if it has any."""
    write: str = ""
    """The token of its state."""
    format: int = FORMAT

    @property
    def vector(self) -> str | None:
        """The name of the vector of the present embedder."""
        return None if self.fingerprint is None else vector_name(self.fingerprint)

    def to_payload(self) -> Payload:
        made = None if self.fingerprint is None else asdict(self.fingerprint)
        return {
            "kind": "store",
            "format": self.format,
            "secret": self.secret.hex(),
            "fingerprint": made,
            "_write": self.write,
        }

    @classmethod
    def from_payload(cls, raw: Payload) -> Description:
        """The inverse of `to_payload`."""
        made = raw.get("fingerprint")
        return cls(
            bytes.fromhex(raw["secret"]), None if made is None else Fingerprint(**made), raw["_write"], raw["format"]
        )


def vector_name(fingerprint: Fingerprint) -> str:
    """The name of the vector that one embedder fills."""
    digest = sha256(encode_json([fingerprint.name, fingerprint.revision, fingerprint.dimensions]).encode()).hexdigest()
    return f"text-{digest[:12]}"


def insist_on_embedder(found: Fingerprint | None, asked: Fingerprint | None) -> None:
    """Raise `FingerprintError` if the vectors were made by another embedder."""
    if found is not None and asked is not None and found != asked:
        raise FingerprintError(
            f"the vectors of this store were made by {found.name} {found.revision} ({found.dimensions} dimensions), "
            f"not by {asked.name} {asked.revision} ({asked.dimensions}); open it with that embedder, or open it with "
            "embedder=None and call `await memory.reembed(embedder)`"
        )


class Meta:
    """Reads and writes the description."""

    def __init__(self, points: Points) -> None:
        self._points = points

    async def read(self) -> Description | None:
        """The description as stored; `None` for a new store.

        Raises:
            NewerStoreError: A newer version of this library wrote it.
        """
        found = await self._points.read([_STORE])
        if not found:
            return None
        payload = found[0].payload or {}
        if payload["format"] > FORMAT:
            raise NewerStoreError(
                f"the store {self._points.name!r} was written by a newer version of memory-core "
                f"(format {payload['format']}, this version knows {FORMAT}); upgrade memory-core to open it, or give "
                "another collection name"
            )
        return Description.from_payload(payload)

    async def claim(self, fingerprint: Fingerprint | None) -> Description:
        """The description, created if missing; if it has no fingerprint, `fingerprint` is stored.

        Raises:
            FingerprintError: Its vectors were made by another embedder.
        """
        found = await self.read()
        if found is None:
            fresh = Description(secrets.token_bytes(32), write=token())
            await self._points.upsert([Point(_STORE, fresh.to_payload())], models.UpdateMode.INSERT_ONLY)
            found = await self.known()
        if found.fingerprint is None and fingerprint is not None:
            await self.change(found, replace(found, fingerprint=fingerprint))
            found = await self.known()
        insist_on_embedder(found.fingerprint, fingerprint)
        return found

    async def known(self) -> Description:
        """The description of a store that has one."""
        found = await self.read()
        if found is None:
            raise StorageError(f"the description in {self._points.name!r} is gone; restore a snapshot, or move anew")
        return found

    async def change(self, was: Description, to: Description) -> bool:
        """Replace the description if it is still in the state that was read; returns whether it was."""
        changed = replace(to, write=token())
        condition = all_of(any_of("_write", [was.write]))
        await self._points.upsert([Point(_STORE, changed.to_payload())], models.UpdateMode.UPDATE_ONLY, condition)
        return (await self.known()).write == changed.write

    async def probe(self) -> None:
        """Make sure that the server honours conditions on writes; old servers ignore them silently.

        Raises:
            StorageError: It ignores them, so concurrent writers would overwrite each other.
        """
        unmatched = all_of(any_of("_write", ["none"]))
        tries = [
            (models.UpdateMode.INSERT_ONLY, None, "first"),
            (models.UpdateMode.INSERT_ONLY, None, "second"),
            (models.UpdateMode.UPDATE_ONLY, unmatched, "third"),
        ]
        for mode, condition, write in tries:
            await self._points.upsert([Point(_PROBE, {"kind": "probe", "_write": write})], mode, condition)
        (found,) = await self._points.read([_PROBE])
        if (found.payload or {}).get("_write") != "first":
            raise StorageError(
                "this Qdrant server ignores update_mode and update_filter, with which writers detect each other; "
                "upgrade it"
            )

    async def positions(self) -> dict[Scope, Position]:
        """The position of this mirror for each owner of a file."""
        found = await self._points.all(all_of(same("kind", "mirror")))
        return {
            Scope(entry["app"], entry["user"]): Position(*entry["position"])
            for record in found
            if (entry := record.payload)
        }

    async def note_position(self, point: str, scope: Scope, position: Position | None) -> None:
        """Store the position of this mirror for an owner at a point; `None` removes it."""
        if position is None:
            await self._points.write(self._points.delete(all_of(among([point]))))
            return
        numbers = [position.owner, position.next, position.version]
        payload = {"kind": "mirror", "app": scope.app, "user": scope.user, "position": numbers}
        await self._points.upsert([Point(point, payload)], models.UpdateMode.UPSERT)
