"""The parties on which a memory depends, each with a fault for Ann that lasts until it is mended."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from memory_core import Fingerprint, Hit, MemoryRecord, Scope
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.requests import SearchRequest
from tests.adapters.closes.slow_store import SlowStore, at

if TYPE_CHECKING:
    from memory_core.supplied import Vector, Vectors

FAULTS: Final = ("hang", "drip", "error", "rubbish", "cancel")
ANN, TOM = "ann", "tom"
WORD: Final = "bees"
"""Only Ann speaks of them."""
_STEP_SECONDS: Final = 0.01


class Fault:
    """The fault of a party.

    A party that hangs does not listen to being cancelled and never ends before it is mended; one that drips works, but
    not before the others have been served.

    Args:
        kind: One of `FAULTS`.
        error: The error that the party raises.
    """

    def __init__(self, kind: str, error: Exception) -> None:
        self.kind: str | None = kind
        self._error = error
        self.is_met, self.are_others_served = threading.Event(), threading.Event()  # several threads and loops meet it

    def mend(self) -> None:
        """Let the party work."""
        self.kind = None

    async def meet(self) -> bool:
        """Suffer it; returns whether the party answers rubbish."""
        if self.kind is not None:
            self.is_met.set()
        while self._goes_on():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(_STEP_SECONDS)
        return self._ended()

    def meet_blocking(self) -> bool:
        """`meet` for a function."""
        if self.kind is not None:
            self.is_met.set()
        while self._goes_on():
            time.sleep(_STEP_SECONDS)
        return self._ended()

    def _goes_on(self) -> bool:
        return self.kind == "hang" or (self.kind == "drip" and not self.are_others_served.is_set())

    def _ended(self) -> bool:
        if self.kind == "error":
            raise self._error
        if self.kind == "cancel":
            raise asyncio.CancelledError
        return self.kind == "rubbish"


class FaultyStore(SlowStore):
    """A store with a fault for Ann when it writes, before or after it is done, or when it searches."""

    def __init__(self, path: Path, fault: Fault, when: str) -> None:
        super().__init__(at(path), one_by_one=False)
        self._fault, self._when = fault, when

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        is_rubbish = await self._met(scope, "before a write")
        done = await super().add(scope, records, embed_later=embed_later, versions=versions)
        is_rubbish |= await self._met(scope, "after a write")
        return cast("Any", 3) if is_rubbish else done

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str], embed_later: bool
    ) -> list[MemoryRecord]:
        is_rubbish = await self._met(scope, "before a write")
        done = await super().put(scope, records, remove=remove, embed_later=embed_later)
        is_rubbish |= await self._met(scope, "after a write")
        return cast("Any", 3) if is_rubbish else done

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        is_rubbish = await self._met(scopes[0], "in a search")
        return cast("Any", 3) if is_rubbish else await super().search(scopes, request)

    async def _met(self, scope: Scope, when: str) -> bool:
        return scope.user == ANN and self._when == when and await self._fault.meet()


class FaultyEmbedder:
    """An embedder with a fault for what Ann says."""

    def __init__(self, fault: Fault) -> None:
        self._whole, self._fault = HashingEmbedder(), fault

    @property
    def fingerprint(self) -> Fingerprint:
        return self._whole.fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        is_rubbish = any(WORD in text for text in texts) and await self._fault.meet()
        return cast("Any", "a poem") if is_rubbish else await self._whole.embed_documents(texts)

    async def embed_query(self, text: str) -> Vector:
        is_rubbish = WORD in text and await self._fault.meet()
        return cast("Any", "a poem") if is_rubbish else await self._whole.embed_query(text)

    async def close(self) -> None: ...


class FaultyReranker:
    """A reranker with a fault for what Ann asks."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        is_rubbish = WORD in query and await self._fault.meet()
        return [float("nan")] if is_rubbish else [0.0] * len(texts)


class FaultyOwners:
    """A function that says who a caller is, with a fault for Ann."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def __call__(self, name: str) -> str:
        is_rubbish = name == ANN and self._fault.meet_blocking()
        return cast("Any", 3) if is_rubbish else name
