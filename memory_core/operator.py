"""All owners of a memory at once, for its operator: the command line, the studio, a migration.

Never for an adapter or a tool: they act for one owner, through a bound handle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from typing import Final, TypeVar

from memory_core.concurrency.loop import on_core
from memory_core.handle import BoundMemory, owned_by
from memory_core.models import Finding, Hit, Mode, Scope, Stats
from memory_core.open_store import OpenStore
from memory_core.protocols import Store
from memory_core.retrieval.hits import Hits
from memory_core.storage.optional import maintained
from memory_core.where.where import EVERYTHING, Where

T = TypeVar("T")

AT_ONCE: Final = 32
"""Owners that are asked side by side, so that one whose index has to be loaded does not hold up the others."""


class Operator:
    """Access to the memories of all owners: `Memory.operator()`."""

    def __init__(self, memory: OpenStore) -> None:
        self._memory = memory

    async def owners(self) -> list[Scope]:
        """All owners that have a record, by app and user."""
        return await self._run(lambda store: maintained(store).owners())

    def handle(self, owner: Scope) -> BoundMemory:
        """The handle of one of `owners()`, which has all other operations."""
        return owned_by(BoundMemory(self._memory, Scope(owner.app)), owner.user)

    async def stats(self) -> Mapping[Scope, Stats]:
        """The counts of each owner."""
        counts: dict[Scope, Stats] = {}
        for some in _parts(await self.owners()):
            counts |= zip(some, await asyncio.gather(*(self.handle(owner).stats() for owner in some)), strict=True)
        return counts

    async def search(
        self, query: str, *, limit: int = 10, where: Where = EVERYTHING, mode: Mode = "hybrid", explain: bool = False
    ) -> Hits:
        """The best hits of all owners, best first.

        Each owner is searched separately and the hits are merged by score. Scores of two owners are only roughly
        comparable, because each uses that owner's statistics. `Hit.record` names the owner. The arguments mean what
        they mean in `BoundMemory.search`.
        """
        best: list[Hit] = []
        for some in _parts(await self.owners()):
            found = await asyncio.gather(
                *(
                    self.handle(owner).search(query, limit=limit, where=where, mode=mode, explain=explain)
                    for owner in some
                )
            )
            every = chain(best, *found)  # among equal scores, the earlier owner's
            best = nlargest(limit, every, key=lambda hit: hit.score)
        return Hits(best)

    async def probe(self) -> int | None:
        """Do what a write does, or a read of a memory that only reads, and change no record; returns how many vectors
        are pending, all owners together, `None` if the store does not know.

        Raises:
            StorageError: A write, or a read, would fail now: the file was moved or replaced, the disk is full.
        """
        return await self._run(lambda store: maintained(store).probe())

    async def check(self) -> list[Finding]:
        """The problems of the store, and which of them are damage; empty if it is intact. Reads everything."""
        return await self._run(lambda store: maintained(store).check())

    async def vacuum(self) -> None:
        """Return the space of deleted records. Writers wait meanwhile; a Qdrant server does this automatically."""
        await self._run(lambda store: maintained(store).vacuum())

    async def _run(self, work: Callable[[Store], Coroutine[object, object, T]]) -> T:
        async def on_store() -> T:
            return await work(await self._memory.ready())

        return await on_core(on_store)


def _parts(owners: Sequence[Scope]) -> Iterator[Sequence[Scope]]:
    return (owners[start : start + AT_ONCE] for start in range(0, len(owners), AT_ONCE))
