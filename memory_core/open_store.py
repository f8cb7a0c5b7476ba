"""The store that a memory and its handles share, opened on first use and closed once.

A `Memory` and its handles hold one `OpenStore`, which holds none of them. So the store stays open as long as one of
them is left, and is closed in the background once Python has collected the last.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import sys
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import partial
from typing import Final, NoReturn, Protocol, Self

from memory_core.concurrency.loop import OF_PARENT, CoreLoop, core_loop, on_core, promised
from memory_core.errors import ClosedError, reason_for_log
from memory_core.models import Hit, MemoryRecord, Page, Scope
from memory_core.protocols import Adding, Store
from memory_core.requests import ListRequest, SearchRequest
from memory_core.supplied import Clock

logger = logging.getLogger(__name__)

_COUNTING_SECONDS: Final = 4.0
"""The time that `close` waits until reads are counted, as long as adapters wait for their writes."""

EXIT_SECONDS: Final = 1.0
"""The time that interpreter shutdown waits for unclosed memories; acknowledged writes are safe in any case."""


class Background(Protocol):
    """The work that a store does in the background."""

    async def settle(self) -> None:
        """Return when everything that it was given so far is stored or has failed; called on the core loop."""
        ...


class HitOrder(Protocol):
    """Puts the best hits of a search into another order, and never fails: a `Reranker` with a deadline."""

    def widened(self, request: SearchRequest) -> SearchRequest:
        """The request for the hits to order."""
        ...

    async def reranked(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The hits in the new order, or in their own; await it on the core loop."""
        ...


class OpenStore:
    """The store of a memory, for handles and adapters: opened on first use, and closed by `Memory.close`.

    Args:
        place: Its location, as logs and `repr` show it.
        make: Creates the store without opening it; holds neither a memory nor a handle.
        clock: Returns the current time in UTC.
        reranking: Orders the best hits of every search.
        zone: Of the handles that say no other.
        path: Of the memory file as it was given; `None` for another store.
    """

    def __init__(
        self,
        place: str,
        make: Callable[[], Store],
        *,
        clock: Clock,
        reranking: HitOrder | None,
        zone: tzinfo = UTC,
        path: str | None = None,
    ) -> None:
        self.place: Final = place
        self.path: Final = path
        self.clock = clock
        self.reranking = reranking
        self.zone: Final = zone
        self._make = make
        self._prepare: Callable[[], object] | None = None
        self._store: Store | None = None
        self._adding: Adding | None = None
        """The store again while it is open, if it adds single records without a task."""
        self._closed = False
        self._opening = asyncio.Lock()
        self._core: CoreLoop | None = None
        """The loop it was opened on, which distinguishes this process from its parent."""
        self._let_go: weakref.finalize[..., OpenStore] | None = None
        self._background: weakref.WeakSet[Background] = weakref.WeakSet()
        self._touching: set[concurrent.futures.Future[Page]] = set()
        """Reads that are being counted."""

    def __repr__(self) -> str:
        return f"<OpenStore {self.place}, {self.state}>"

    @property
    def state(self) -> str:
        """Closed, not open yet, or open; for `repr`."""
        return "closed" if self._closed else "not open yet" if self._store is None else "open"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a memory has an open file and cannot be pickled; open it again where it is needed: Memory(path)"
        )

    async def ready(self) -> Store:
        """The open store; await this, and use the store, on the core loop only.

        Raises:
            ClosedError: The memory was closed, or was opened by the parent of a forked process.
        """
        if self._core is not core_loop():
            self._settle_here()
        if self._store is not None:
            return self._store
        async with self._opening:
            if self._closed:
                raise ClosedError("this memory was closed; make a new Memory to open it again")
            if self._store is not None:
                return self._store
            if self._prepare is not None:
                await asyncio.to_thread(self._prepare)
            store = self._make()
            await store.open()
            self._hold(store)
            logger.info("opened %s", self.place)
            return store

    def prepare_first(self, prepare: Callable[[], object]) -> None:
        """Let `prepare` run in a thread before the store is made; if it raises, the store is not opened."""
        self._prepare = prepare

    def add_one(self, scope: Scope, record: MemoryRecord, *, embed_later: bool) -> Awaitable[MemoryRecord | None]:
        """Add one record: `Store.add`, or without a task if the store offers that, which takes 15 % less of the CPU for
        each of 32 writers (vectors given)."""
        adding = self._adding
        if adding is not None and self._core is core_loop():  # or this is a forked child
            return promised(partial(adding.begin_add, scope, record, embed_later=embed_later))

        async def add() -> MemoryRecord | None:
            return (await (await self.ready()).add(scope, [record], embed_later=embed_later))[0]

        return on_core(add)

    def list_page(self, scope: Scope, request: ListRequest) -> Awaitable[Page]:
        """List records, after the reads that are being counted if their count decides the order."""
        return on_core(self._list, scope, request)

    def touch_later(self, scope: Scope, request: ListRequest) -> concurrent.futures.Future[Page]:
        """Count a read without waiting for it; `touched` does, and `close`."""
        touching = core_loop().submit(self._list(scope, request))
        self._touching.add(touching)
        touching.add_done_callback(self._touching.discard)
        return touching

    async def touched(self) -> None:
        """Return when every read so far is counted or could not be; for those who look at what was read."""
        counted = (asyncio.wrap_future(each) for each in list(self._touching))
        await asyncio.shield(asyncio.gather(*counted, return_exceptions=True))  # a caller that gives up stops no count

    def finish_first(self, background: Background) -> None:
        """Let `close` wait for what an adapter writes to this memory in the background."""
        self._background.add(background)

    async def close(self) -> None:
        """See `Memory.close`."""
        if not (self._closed and self._store is None) and not self._is_of_parent():
            await on_core(self._close)

    def _is_of_parent(self) -> bool:
        """True if this is a forked process and its parent has opened the memory, or was about to."""
        used = self._store is not None or self._opening.locked()
        return used and self._core is not None and self._core.pid != os.getpid()

    def _settle_here(self) -> None:
        """Make this memory belong to this process."""
        if self._is_of_parent():
            raise ClosedError(OF_PARENT)
        self._core, self._opening = core_loop(), asyncio.Lock()

    def _hold(self, store: Store) -> None:
        self._store = store
        self._adding = store if isinstance(store, Adding) else None
        self._let_go = weakref.finalize(self, _close_in_background, core_loop(), store)
        self._let_go.atexit = False  # see `_close_forgotten`
        _open_stores.add(self)

    async def _list(self, scope: Scope, request: ListRequest) -> Page:
        if request.order == "accessed":
            await self.touched()
        return await (await self.ready()).list(scope, request)

    async def _close(self) -> None:
        if self._core is not core_loop():
            self._settle_here()
        await asyncio.gather(*(each.settle() for each in list(self._background)))
        with suppress(TimeoutError):
            async with asyncio.timeout(_COUNTING_SECONDS):
                await self.touched()
        async with self._opening:
            self._closed = True
            store, self._store = self._store, None
            self._adding = None
        _open_stores.discard(self)
        if self._let_go is not None:
            self._let_go.detach()
        if store is not None:
            await store.close()


_open_stores: weakref.WeakSet[OpenStore] = weakref.WeakSet()
_closing: set[concurrent.futures.Future[None]] = set()
"""Stores of memories that were dropped without `close`."""


def _close_in_background(core: CoreLoop, store: Store) -> None:
    """Close the store of a collected memory; this can run in any thread, so it does not wait."""
    if core.pid != os.getpid() or sys.is_finalizing():
        return  # the store belongs to the parent process, or the interpreter is shutting down
    closed = core.submit(_close_quietly(store))
    _closing.add(closed)
    closed.add_done_callback(_closing.discard)


async def _close_quietly(store: Store) -> None:
    try:
        await store.close()
    except Exception as error:  # noqa: BLE001  (no caller is left to receive it)
        logger.warning("closing a dropped memory failed: %s", reason_for_log(error))


def _forget_parent() -> None:
    """Drop what the parent process has open: a child must neither close it nor wait for what the parent does."""
    for each in _open_stores:
        each._touching.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    _open_stores.clear()
    _closing.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


@atexit.register
def _close_forgotten() -> None:
    """Close unclosed memories, so that the write-ahead log is merged into the file; wait a limited time only."""
    waiting = {core_loop().submit(each.close()) for each in list(_open_stores)}
    concurrent.futures.wait(waiting | _closing, timeout=EXIT_SECONDS)
