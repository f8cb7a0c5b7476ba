"""Give an app another name: the records of each of its users move to the same user of the other app.

A record is written under the new name before it is removed under the old one, so a call that is interrupted in any way
loses nothing, and the next one continues it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_core.concurrency.loop import on_core
from memory_core.errors import InvalidInputError
from memory_core.memory import Memory
from memory_core.models import STATES, Scope
from memory_core.operator import Operator
from memory_core.storage.shared.transfer import Carried, Copyable, Tombstones, tombstone
from memory_core.transfer.migrate import port_of
from memory_core.values.progress import Progress, ProgressCallback
from memory_core.where.where import Where

BATCH: Final = 512
"""Records moved at a time."""
PASSES: Final = 4
"""How often records that were written under the old name meanwhile are moved too."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """The result of `rename_app`."""

    users: int
    """Users that had memories under the old name."""
    records: int
    """Records that were moved by this call, or would be moved."""
    left: int
    """Records that stay under the old name: under the new one, their user has another memory of the same id or source
    key, or has forgotten it."""


async def rename_app(
    memory: Memory, old: str, new: str, *, dry_run: bool = False, progress: ProgressCallback | None = None
) -> Renamed:
    """Move the memories of all users of an app to another app, with ids, times, counts, earlier texts and vectors.

    Calling it again moves what was written under the old name since, and nothing twice. A message that both names have,
    as one session that was stored under both, is kept once. What was forgotten under the old name is known only by
    hashes that contain the name: a session that is stored again under the new name brings it back.

    A change to a record in the instant in which it moves can be lost, so no program should use the old name meanwhile.

    Args:
        memory: Where both apps are.
        old: The app that has the memories.
        new: The app that gets them; it may have memories of its own.
        dry_run: Count, and move nothing.
        progress: Called for each user and after each batch.

    Raises:
        ScopeError: A name is invalid.
        InvalidInputError: Both names are equal, or neither has memories.
        StorageError: The store failed; what has been moved stays moved.
    """
    if Scope(old) == Scope(new):
        raise InvalidInputError(f"the app is {old!r} already; give another name")

    async def work() -> Renamed:
        port: Copyable = port_of(await memory.ready())
        owners = await port.owners()
        insist_on_memories(owners, old, new)
        owners = [owner for owner in owners if owner.app == old]
        moves = [_Move(memory, port, owner, replace(owner, app=new), dry_run=dry_run) for owner in owners]
        for number, move in enumerate(moves, 1):
            await move.carry(f"user {number} of {len(moves)}", progress)
        return Renamed(len(moves), sum(move.moved for move in moves), sum(len(move.left) for move in moves))

    return await on_core(work)


def insist_on_memories(owners: Sequence[Scope], old: str, new: str) -> None:
    """Refuse a name that nobody uses: a misspelt one would look as if everything had been moved.

    Raises:
        InvalidInputError: Neither app has memories.
    """
    apps = sorted({owner.app for owner in owners})
    if old not in apps and new not in apps:
        has = f"it has those of {', '.join(map(repr, apps))}" if apps else "it has none at all"
        raise InvalidInputError(f"the memory has no memories of an app {old!r}; {has}")


class _Move:
    """The records of one user on their way."""

    def __init__(self, memory: Memory, port: Copyable, source: Scope, target: Scope, *, dry_run: bool) -> None:
        self._there = Operator(memory).handle(target)
        self._port = port
        self._source, self._target = source, target
        self._dry_run = dry_run
        self.moved = 0
        self.left: set[str] = set()
        """Ids of the records that stay."""

    async def carry(self, name: str, progress: ProgressCallback | None) -> None:
        """Move until nothing is left that can be moved; what comes too often meanwhile is left to the next call."""
        if not self._dry_run:
            await self._there.sweep()  # what has expired may have the same source keys
        forgotten = await self._port.tombstones()
        for _ in range(1 if self._dry_run else PASSES):
            ids = [entry.id for entry in await self._port.manifest(self._source) if entry.id not in self.left]
            if not ids:
                break
            for done, some in _batches(ids):
                await self._carry(some, forgotten)
                if progress is not None:
                    progress(Progress(done, len(ids), name))

    async def _carry(self, ids: Sequence[str], forgotten: Tombstones) -> None:
        items = await self._port.take(self._source, ids)
        known = {item.record.id: item for item in await self._port.take(self._target, ids)}
        holders = await self._holders(items)
        copies: list[Carried] = []
        for item in items:
            there, held_by = known.get(item.record.id), holders.get(item.record.source_key)
            if self._is_forgotten(item, forgotten) or _is_another(item, there, held_by):
                self.left.add(item.record.id)
            elif _is_behind(item, there, held_by):
                copies.append(replace(item, record=replace(item.record, app=self._target.app)))
        gone = [item.record.id for item in items if item.record.id not in self.left]
        self.moved += len(gone)
        if not self._dry_run:
            await self._port.restore(self._target, copies)
            await self._port.restore(self._source, (), remove=gone)

    async def _holders(self, items: Sequence[Carried]) -> dict[str | None, tuple[str, str]]:
        """Id and text of the records that have these source keys under the new name."""
        keys = tuple(item.record.source_key for item in items if item.record.source_key is not None)
        if not keys:
            return {}
        page = await self._there.list(where=Where(source_keys=keys, states=STATES), limit=BATCH)
        return {record.source_key: (record.id, record.text) for record in page.records}

    def _is_forgotten(self, item: Carried, forgotten: Tombstones) -> bool:
        key = item.record.source_key
        return key is not None and tombstone(forgotten.secret, self._target, key) in forgotten.digests


def _batches(ids: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for start in range(0, len(ids), BATCH):
        yield min(start + BATCH, len(ids)), ids[start : start + BATCH]


def _is_another(item: Carried, there: Carried | None, held_by: tuple[str, str] | None) -> bool:
    """Whether the new name has a different memory in the place of this one, which must not be overwritten."""
    record = item.record
    if there is not None and there.record.created_at != record.created_at:
        return True
    return held_by is not None and held_by[0] != record.id and held_by[1] != record.text


def _is_behind(item: Carried, there: Carried | None, held_by: tuple[str, str] | None) -> bool:
    """Whether the new name lacks this record, or has an earlier version of it from an interrupted call."""
    if held_by is not None and held_by[0] != item.record.id:
        return False  # the same message, stored under both names
    return there is None or there.record.version < item.record.version
