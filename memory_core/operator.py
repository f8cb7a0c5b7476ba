"""All owners of a memory at once, for whoever runs it: the command line, the studio, a migration.

Never for an adapter or a tool: what they do is done for one owner, through a bound handle.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from heapq import nlargest
from typing import TypeVar

from memory_core.handle import EVERYTHING, BoundMemory, owned_by
from memory_core.hits import Hits
from memory_core.loop import on_core
from memory_core.models import Hit, Mode, Scope, Stats
from memory_core.protocols import Home, Store
from memory_core.storage.optional import maintained
from memory_core.where.value import Where

T = TypeVar("T")


class Operator:
    """Sees everybody's memories: `Memory.operator()`."""

    def __init__(self, memory: Home) -> None:
        self._memory = memory

    async def owners(self) -> list[Scope]:
        """Everybody who has a record, by app and user."""
        return await self._run(lambda store: maintained(store).owners())

    def handle(self, owner: Scope) -> BoundMemory:
        """The handle of one of `owners()`, which does everything else."""
        return owned_by(BoundMemory(self._memory, Scope(owner.app)), owner.user)

    async def stats(self) -> Mapping[Scope, Stats]:
        """What each owner has."""
        return {owner: await self.handle(owner).stats() for owner in await self.owners()}

    async def search(
        self, query: str, *, limit: int = 10, where: Where = EVERYTHING, mode: Mode = "hybrid", explain: bool = False
    ) -> Hits:
        """The best hits of all owners, best first.

        Each owner is searched alone and the hits are merged by score, which compares them roughly: the statistics
        behind a score are the owner's. Whose a hit is, its record says.

        Args:
            query, limit, where, mode, explain: As for `BoundMemory.search`.
        """
        best: list[Hit] = []
        for owner in await self.owners():
            hits = await self.handle(owner).search(query, limit=limit, where=where, mode=mode, explain=explain)
            best = nlargest(limit, [*best, *hits], key=lambda hit: hit.score)  # of equals the earlier owner's
        return Hits(best)

    async def check(self) -> list[str]:
        """What is wrong with the store, one sentence each; nothing if it is whole. Reads everything."""
        return await self._run(lambda store: maintained(store).check())

    async def vacuum(self) -> None:
        """Give the space of what was deleted back. Writers wait meanwhile; a Qdrant server does this by itself."""
        await self._run(lambda store: maintained(store).vacuum())

    async def _run(self, work: Callable[[Store], Coroutine[object, object, T]]) -> T:
        async def on_store() -> T:
            return await work(await self._memory.ready())

        return await on_core(on_store)
