"""The description of a store: one point in a small collection without texts."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Final

from memory_core.errors import NewerStoreError, NotAStoreError, StorageError
from memory_core.models import Fingerprint
from memory_core.storage.qdrant.codec import Payload, Point, named_id, token
from memory_core.storage.qdrant.points import Points
from memory_core.storage.shared.fingerprints import insist_on_embedder
from memory_core.values.json_text import encode_json

FORMAT: Final = 3
"""Format of the payload and the collections; a store with another format is not changed."""
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

    def to_payload(self) -> Payload:
        made = None if self.fingerprint is None else asdict(self.fingerprint)
        there = {"format": FORMAT, "secret": self.secret.hex(), "fingerprint": made}
        return {**there, "_write": self.write}


def vector_name(fingerprint: Fingerprint) -> str:
    """The name of the vector that one embedder fills."""
    digest = sha256(encode_json([fingerprint.name, fingerprint.revision, fingerprint.dimensions]).encode()).hexdigest()
    return f"text-{digest[:12]}"


@dataclass(frozen=True, slots=True)
class Meta:
    """Reads and writes the description."""

    points: Points

    async def read(self) -> Description | None:
        """The description as stored; `None` for a new store. Raises `NewerStoreError` if a newer version wrote it, and
        `NotAStoreError` if a development version did."""
        found = await self.points.read([_STORE])
        if not found:
            return None
        payload = found[0].payload
        if payload["format"] > FORMAT:
            raise NewerStoreError(
                f"the store {self.points.name!r} was written by a newer version of memory-core "
                f"(format {payload['format']}, this version knows {FORMAT}); upgrade memory-core to open it, or give "
                "another collection name"
            )
        if payload["format"] < FORMAT:
            raise NotAStoreError(
                f"{self.points.name!r} is of a development version, which this one does not read; move it to a file "
                "with that version, or give another collection name"
            )
        made = payload.get("fingerprint")
        secret = bytes.fromhex(payload["secret"])
        return Description(secret, None if made is None else Fingerprint(**made), payload["_write"])

    async def claim(self, asked: Fingerprint | None) -> Description:
        """The description, created if missing; if it has no fingerprint, the one asked for is stored. Raises as
        `QdrantStore.open`; if a newer version made the store, nothing was written."""
        is_new = await self.read() is None
        await self._probe()
        if is_new:
            fresh = Description(secrets.token_bytes(32), write=token())
            await self.points.upsert([Point(_STORE, fresh.to_payload())])
        known = await self.known()
        if known.fingerprint is None and asked is not None:
            await self.change(known, replace(known, fingerprint=asked))
            known = await self.known()
        insist_on_embedder(known.fingerprint, asked)
        return known

    async def known(self) -> Description:
        """The description of a store that has one."""
        found = await self.read()
        if found is None:
            raise StorageError(f"the description in {self.points.name!r} is gone; restore a snapshot, or move again")
        return found

    async def change(self, was: Description, to: Description) -> bool:
        """Replace the description if it is still in the state that was read; returns whether it was."""
        changed = replace(to, write=token())
        await self.points.upsert([Point(_STORE, changed.to_payload())], {_STORE: was.write})
        return (await self.known()).write == changed.write

    async def _probe(self) -> None:
        """Make sure that the server honours conditions on writes; old servers ignore them silently."""
        for was, write in ((None, "first"), (None, "second"), ({_PROBE: "none"}, "third")):
            await self.points.upsert([Point(_PROBE, {"_write": write})], was)
        (found,) = await self.points.read([_PROBE])
        if found.payload.get("_write") != "first":
            raise StorageError(
                "this Qdrant server ignores update_mode and update_filter, with which writers detect each other; "
                "upgrade it"
            )
