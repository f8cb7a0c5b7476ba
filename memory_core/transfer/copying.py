"""Copying memories between stores: SQLite to Qdrant, Qdrant to SQLite, or one file to another.

Both sides are read, record by record with a digest, and records that differ are copied, until nothing differs. So the
only state of a copy is the target itself: a killed one continues when it is started again, and one whose source is
being written to is repeated until both sides agree. A record that the target returns otherwise than it was given is an
error and never counts as copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from memory_core.concurrency.loop import on_core
from memory_core.errors import InvalidInputError, StorageError
from memory_core.memory import Memory
from memory_core.models import Scope
from memory_core.protocols import Store
from memory_core.storage.shared.transfer import Copyable, Entry, Tombstones, checksum, sourceless
from memory_core.values.progress import Progress, ProgressCallback

COPIED_AT_ONCE: Final = 512
"""Records copied at a time: some megabytes, with their vectors, sent to a server in several parallel requests."""
PASSES: Final = 4
"""The number of times that concurrent changes are copied too; later changes are left to the next call."""
NAMED: Final = 5
"""The number of differing records of an owner that an error names."""


@dataclass(frozen=True, slots=True)
class CopiedOwner:
    """One owner after a copy, as of the last listing of both sides."""

    scope: Scope
    records: int
    checksum: str
    """Checksum of all records at the target, with their earlier texts; equal at the source if nothing is behind."""
    behind: int = 0
    """The number of records that changed at the source during the last round."""
    sourceless: int = 0
    """Records at the target that were made of the words of others, of which one is not there, because it has expired,
    say. They are kept as they are."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a copy."""

    owners: tuple[CopiedOwner, ...]
    copied: int
    """Records written to the target by this call."""
    removed: int
    """Records deleted from the target because the source no longer has them."""

    @property
    def records(self) -> int:
        """The number of records that the target has."""
        return sum(owner.records for owner in self.owners)

    @property
    def behind(self) -> int:
        """The number of records that the next call has to copy; 0 if both sides agreed."""
        return sum(owner.behind for owner in self.owners)

    @property
    def sourceless(self) -> int:
        """See `CopiedOwner.sourceless`."""
        return sum(owner.sourceless for owner in self.owners)


async def copy_memory(source: Memory, target: Memory, *, progress: ProgressCallback | None = None) -> Report:
    """Make `target` an exact copy of `source`: all owners, all records in every state, all forgotten keys.

    `source` can be read and written meanwhile: the next call copies what is written after the last comparison of its
    owner. `target` must not be in use: what only it has, whether deleted at the source or added at the target, is
    removed. If a call is interrupted in any way, the next one completes it. Vectors are copied if both stores have the
    same embedder; otherwise the target computes them in the background.

    Args:
        progress: Called for each owner before the first batch and after each one; counts records that are equal on both
            sides.

    Raises:
        InvalidInputError: A store does not support it, or the target contains memories that are not copies of these.
        StorageError: A store failed, or the target returns other records than were copied to it; the message names
            them. Everything else is copied then.
    """

    async def work() -> Report:
        return await _Copying(port_of(await store_of(source)), port_of(await store_of(target)), progress).copy()

    return await on_core(work)


async def store_of(memory: Memory) -> Store:
    """The open store of a memory; await this, and use the store, on the core loop only."""
    return await memory.bind().memory.ready()


def port_of(store: object) -> Copyable:
    """The records of a store as they are, in and out.

    Raises:
        InvalidInputError: The store does not support it.
    """
    port = getattr(store, "port", None)
    if port is None:
        raise InvalidInputError(f"a {type(store).__name__} cannot be copied; use a SQLite file or a QdrantStore")
    found: Copyable = port()
    return found


async def is_of_another_store(port: Copyable, secret: bytes) -> bool:
    """True if a store has memories, or has forgotten some, and is no copy of the store that this secret marks."""
    known = await port.tombstones()
    return known.secret != secret and bool(known.digests or await port.owners())


@dataclass(frozen=True, slots=True)
class _Difference:
    """The difference between both sides for one owner, as ids."""

    differing: list[str]
    """Records that the target lacks or that differ there, in the order of arrival."""
    gone: list[str]
    """Records that only the target has."""


@dataclass(slots=True)
class _Copying:
    source: Copyable
    target: Copyable
    tell: ProgressCallback | None
    copied: int = 0
    removed: int = 0
    same_vectors: bool = False
    finished: list[CopiedOwner] = field(default_factory=list[CopiedOwner])
    wrong: list[str] = field(default_factory=list[str])
    """The differences although all was copied: a sentence for each owner."""

    async def copy(self) -> Report:
        await self._claim()
        fingerprint = await self.source.fingerprint()
        self.same_vectors = fingerprint is not None and fingerprint == await self.target.fingerprint()
        scopes = await self.source.owners()
        # Owners that are gone are emptied; an owner that appears meanwhile is left to the next call.
        scopes += [scope for scope in await self.target.owners() if scope not in set(scopes)]
        for number, scope in enumerate(scopes, 1):
            await self._copy_owner(scope, number, len(scopes))
        await self.target.adopt(await self.source.tombstones())  # keys forgotten while records were copied
        if self.wrong:
            raise StorageError(f"the target is no copy of the source: {'; '.join(self.wrong)}")
        return Report(
            tuple(owner for owner in self.finished if owner.records or owner.behind), self.copied, self.removed
        )

    async def _claim(self) -> None:
        """Make sure that the target is a copy of the source, or empty."""
        secret = (await self.source.tombstones()).secret
        if await is_of_another_store(self.target, secret):
            raise InvalidInputError(
                "the target contains memories that were not copied from this source, and a copy would replace them; "
                "give a new file or another collection name"
            )
        await self.target.adopt(Tombstones(secret, frozenset()))

    async def _copy_owner(self, scope: Scope, number: int, owners: int) -> None:
        sent: dict[str, bytes] = {}
        for passed in range(PASSES + 1):
            here, there = await asyncio.gather(self.source.manifest(scope), self.target.manifest(scope))
            found = self._difference(here, there)
            done = len(here) - len(found.differing)
            self._tell(number, owners, done, len(here))
            behind = len(found.differing) + len(found.gone)
            if not behind or passed == PASSES:
                self._compare(scope, here, there, found, sent)
                return
            await self.target.restore(scope, (), remove=found.gone)
            self.removed += len(found.gone)
            for start in range(0, len(found.differing), COPIED_AT_ONCE):
                done += await self._copy(scope, found.differing[start : start + COPIED_AT_ONCE], sent)
                self._tell(number, owners, done, len(here))

    def _compare(
        self, scope: Scope, here: Sequence[Entry], there: Sequence[Entry], found: _Difference, sent: dict[str, bytes]
    ) -> None:
        """Tell what is behind, because the source changed after it was copied, from what the target lost or altered."""
        known = {entry.id: entry.digest for entry in here}
        present = {entry.id: entry.digest for entry in there}
        wrong = [one for one in found.differing if sent.get(one) == known[one] != present.get(one)]
        total, behind = checksum(there), len(found.differing) + len(found.gone) - len(wrong)
        self.finished.append(CopiedOwner(scope, len(there), total, behind, sourceless(there)))
        if wrong or (not behind and total != checksum(here)):
            named = ", ".join(map(repr, wrong[:NAMED])) + (f" and {len(wrong) - NAMED} more" if wrong[NAMED:] else "")
            sums = f"checksum {checksum(here)} at the source and {total} at the target"
            self.wrong.append(f"app {scope.app!r}, user {scope.user!r} has {sums}; other records are {named or 'none'}")

    async def _copy(self, scope: Scope, ids: Sequence[str], sent: dict[str, bytes]) -> int:
        items = await self.source.take(scope, ids)
        if not self.same_vectors:
            items = [item.without_vectors() for item in items]
        await self.target.restore(scope, items)
        sent.update((item.record.id, item.digest()) for item in items)
        self.copied += len(ids)
        return len(ids)

    def _difference(self, here: Sequence[Entry], there: Sequence[Entry]) -> _Difference:
        present = {entry.id: entry for entry in there}
        ids = {entry.id for entry in here}
        gone = [entry.id for entry in there if entry.id not in ids]
        differing = [entry.id for entry in here if self._differs(entry, present.get(entry.id))]
        return _Difference(differing, gone)

    def _differs(self, here: Entry, there: Entry | None) -> bool:
        if there is None or here.digest != there.digest:
            return True
        return self.same_vectors and here.has_vectors and not there.has_vectors

    def _tell(self, number: int, owners: int, done: int, records: int) -> None:
        if self.tell is not None:
            self.tell(Progress(done, records, f"owner {number} of {owners}"))
