"""The memory itself: open a file, bind it to an owner, add and search.

```python
from memory_core import Memory

async with Memory(":memory:") as memory:
    ann = memory.bind(app="demo", user="ann")
    await ann.add("Ann drinks jasmine tea")
    hits = await ann.search("What does she drink?")
    assert hits[0].record.text == "Ann drinks jasmine tea"
```
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import sys
import time
import weakref
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn, Self

from memory_core.chunking import DEFAULT_CHUNKER, Chunker
from memory_core.concurrency.loop import OF_PARENT, CoreLoop, core_loop, on_core, promised
from memory_core.concurrency.sync import run_sync
from memory_core.errors import ClosedError, InvalidInputError, reason_for_log
from memory_core.handle import BoundMemory
from memory_core.hints import no_attribute
from memory_core.models import MemoryRecord, Page, Quota, Scope
from memory_core.operation import OPERATIONS
from memory_core.operator import Operator
from memory_core.protocols import (
    Adding,
    Background,
    BackingUp,
    Clock,
    Embedder,
    HitOrder,
    Listing,
    ListRequest,
    Reembedding,
    Reranker,
    Store,
)
from memory_core.settings import (
    DEFAULT_EMBEDDER,
    Default,
    insist_on_file,
    insist_on_kinds,
    made,
    made_or_none,
    made_reranking,
    utc_clock,
)
from memory_core.values.limits import CACHE_BYTES
from memory_core.values.progress import ProgressCallback
from memory_core.values.times import utc_now

logger = logging.getLogger(__name__)

_COUNTING_SECONDS: Final = 4.0
"""How long `close` waits until reads are counted, as long as adapters wait for their writes."""

EXIT_SECONDS: Final = 1.0
"""How long interpreter shutdown waits for unclosed memories; acknowledged writes are safe in any case."""


class Memory:
    """A store of memories, opened on first use and usable from any thread and any event loop.

    Memories of one process on the same file share what is open (`docs/files.md`).

    Args:
        store: A file (created if missing, mode 0600), `":memory:"` for a store that ends with the process, or a
            `Store` such as `QdrantStore`.
        embedder: Turns text into vectors; `None` for search by words only.
        reranker: Puts the best hits of every search, recall and tool into its own order, within two seconds; if it
            fails, they keep the order of the search.
        chunker: Splits long texts, so that every part of them can be found by meaning; for a file, and for texts
            written from now on.
        clock: Returns the current time, timezone-aware; tests inject their own.
        quota: Limits what each owner can store; a write beyond it raises `QuotaExceededError`. For a file.
        cache_bytes: How many bytes of the indexes of owners stay in memory, all owners of the file together; that of an
            owner being searched does in any case. For a file.
        read_only: Open an existing file without changing anything: every write raises `ReadOnlyError`, reads are not
            counted, and nothing runs in the background.

    Raises:
        InvalidInputError: The store is neither the path of a file nor a `Store`; the embedder is not an embedder; or an
            argument is for files only.
    """

    def __init__(  # noqa: PLR0913  (one optional keyword per setting)
        self,
        store: str | os.PathLike[str] | Store = "memory.db",
        *,
        embedder: Embedder | Default | None = DEFAULT_EMBEDDER,
        reranker: Reranker | None = None,
        chunker: Chunker = DEFAULT_CHUNKER,
        clock: Clock = utc_now,
        quota: Quota | None = None,
        cache_bytes: int = CACHE_BYTES,
        read_only: bool = False,
    ) -> None:
        insist_on_kinds(store, embedder)
        insist_on_file(store, quota, cache_bytes, read_only=read_only)
        self.clock = utc_clock(clock)
        self._chunker = chunker
        self._quota = quota
        self._cache_bytes = cache_bytes
        self._read_only = read_only
        self._given = store
        self._embedder = embedder
        self.reranking: HitOrder | None = None if reranker is None else made_reranking(reranker)
        self._store: Store | None = None
        self._adding: Adding | None = None
        """The store again while it is open, if it adds single records without a task."""
        self._listing: Listing | None = None
        """The same, if it lists records for any loop."""
        self._closed = False
        self._opening = asyncio.Lock()
        self._core: CoreLoop | None = None
        """The loop it was opened on, which distinguishes this process from its parent."""
        self._let_go: weakref.finalize[..., Memory] | None = None
        self._background: weakref.WeakSet[Background] = weakref.WeakSet()
        self._touching: set[concurrent.futures.Future[Page]] = set()
        """Reads that are being counted."""
        core_loop()  # starts a thread: better here than inside a coroutine

    def __repr__(self) -> str:
        embedder = self._embedder if isinstance(self._embedder, Default | None) else type(self._embedder).__name__
        state = "closed" if self._closed else "not open yet" if self._store is None else "open"
        return f"<Memory {self._place()}, embedder={embedder}, {state}>"

    if not TYPE_CHECKING:  # else every name would be an attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name, OPERATIONS)

    def bind(
        self,
        *,
        app: str = "default",
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        collection: str | None = None,
    ) -> BoundMemory:
        """A handle that reaches only the memories of one owner, `(app, user)`.

        Agent, session and collection, if given, are set on every write and required of every read. Without `user` the
        handle is open: bind it to a user before using it.

        Raises:
            ScopeError: A key is empty, blank, too long, or not a string.
        """
        return BoundMemory(self, Scope(app=app, user=user, agent=agent, session=session, collection=collection))

    def operator(self) -> Operator:
        """All owners at once, for its operator: a command line, a studio, a migration; never an adapter."""
        return Operator(self)

    async def open(self) -> Self:
        """Open the store now instead of on first use, so that errors appear here.

        Raises:
            StorageError: The file is not a memory store, is newer than this library, or cannot be written.
            FingerprintError: Its vectors were made by another embedder.
        """
        await on_core(self.ready)
        return self

    async def reembed(self, embedder: Embedder | Default, *, progress: ProgressCallback | None = None) -> int:
        """Recompute the vectors of all owners with another embedder, and switch to that embedder.

        Searches and writes continue meanwhile: they use the old vectors until all new ones are computed, then a single
        write switches to the new ones. If the call is interrupted before that, by an error or by the end of the
        process, nothing has changed, and the next call with an embedder of the same fingerprint continues where it
        stopped. If the old embedder is no longer available, open the store with `embedder=None` first.

        Other processes that have the store open keep what they write, and must open it with the new embedder. Until
        then, on a file, their searches that would need the old vectors raise `FingerprintError`; on Qdrant, what they
        write is found by its words, and by its meaning once the store is opened again.

        While the vectors are replaced, writers wait (about a second for 60,000 records), and other processes give up a
        write after 30 s. A file needs space for both sets of vectors.

        Args:
            embedder: Owned by the memory once this has returned; until then the caller has to close it.
            progress: Called with the number of vectors that this call has computed so far.

        Returns:
            How many vectors this call computed, one for each piece of a text.

        Raises:
            EmbeddingError: The new embedder failed. The memory keeps using the old one.
            FingerprintError: Another process is re-embedding the store, or did so meanwhile, with a third embedder.
            InvalidInputError: The store does not support it; a SQLite file and Qdrant do.
        """
        return await on_core(self._reembed, embedder, progress)

    async def backup(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, progress: ProgressCallback | None = None
    ) -> Path:
        """Copy the whole memory, as of one moment, to a memory file of mode 0600; returns its full path.

        Searches and writes continue meanwhile. The copy is checked as by `Operator.check` and on disk before it appears
        under its name: an interrupted call leaves no file there, at most a temporary file `.NAME.…` next to it.

        `progress` hears of the pages copied after every 256 of them, and then of the check (`part` is "checking").

        Args:
            path: Path of the copy.
            overwrite: Replace an existing memory file that no process has open.
            progress: Called with the number of pages copied.

        Raises:
            InvalidInputError: The path exists already, or the store is neither a file nor in memory.
            DamagedStoreError: The memory is damaged; no copy was made.
            StorageError: The copy cannot be written.
        """

        async def on_store() -> Path:
            store = await self.ready()
            if not isinstance(store, BackingUp):
                raise InvalidInputError(f"use the snapshots of its server to back up a {type(store).__name__}")
            return await store.backup(path, overwrite=overwrite, progress=progress)

        return await on_core(on_store)

    @staticmethod
    async def restore(
        backup: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Path:
        """Make a memory file from a backup, with the guarantees of `backup`; returns its full path.

        Args:
            backup: A file that `backup` made, or any memory file that no process is writing to; it is not changed.
            path: Path of the new memory file.
            overwrite: Replace an existing memory file; all of its content is lost.
            progress: Called with the number of pages copied.

        Raises:
            InvalidInputError: The path exists already.
            StoreUnavailableError: The file at the path is open somewhere.
            DamagedStoreError: The backup is damaged.
            StorageError: The backup cannot be read, or the file cannot be written.
        """
        from memory_core.storage.sqlite.backup import restore  # noqa: PLC0415  (numpy)

        return await on_core(partial(restore, backup, path, overwrite=overwrite, progress=progress))

    def finish_first(self, background: Background) -> None:
        """Let `close` wait for what an adapter writes to this memory in the background."""
        self._background.add(background)

    async def close(self) -> None:
        """Finish accepted writes and release files and models. Closing twice is fine.

        A memory that is dropped without `close` is closed in the background when Python collects it.
        """
        if not (self._closed and self._store is None) and not self._is_of_parent():
            await on_core(self._close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return run_sync(self.open)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run_sync(self.close)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Frameworks copy configuration that contains a memory; a copied connection would be useless."""
        return self

    def __copy__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a memory has an open file and cannot be pickled; open it again where it is needed: Memory(path)"
        )

    async def ready(self) -> Store:
        """The open store, for handles; await this, and use the store, on the core loop only.

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
            store = self._make_store()
            await store.open()
            self._hold(store)
            logger.info("opened %s", self._place())
            return store

    def _is_of_parent(self) -> bool:
        """Whether this is a forked process and its parent has opened the memory, or was about to."""
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
        self._listing = store if isinstance(store, Listing) else None
        self._let_go = weakref.finalize(self, _close_in_background, core_loop(), store)
        self._let_go.atexit = False  # see `_close_forgotten`
        _open_memories.add(self)

    def add_one(self, scope: Scope, record: MemoryRecord, *, embed_later: bool) -> Awaitable[MemoryRecord | None]:
        """Add one record, for handles: `Records.add` by the fastest path that the store offers."""
        adding = self._adding
        if adding is not None and self._core is core_loop():  # or this is a forked child
            return promised(partial(adding.begin_add, scope, record, embed_later=embed_later))

        async def add() -> MemoryRecord | None:
            return (await (await self.ready()).add(scope, [record], embed_later=embed_later))[0]

        return on_core(add)

    def list_page(self, scope: Scope, request: ListRequest) -> Awaitable[Page]:
        """List records, for handles: `Records.list` by the fastest path that the store offers."""
        listing = self._listing
        waits = request.touch or (request.order == "accessed" and self._touching)
        if listing is not None and not waits and self._core is core_loop():  # or this is a forked child
            page: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
            listing.begin_list(scope, request, page)
            return page

        return on_core(self._list, scope, request)

    def touch_later(self, scope: Scope, request: ListRequest) -> concurrent.futures.Future[Page]:
        """Count a read, for handles, without waiting for it; `touched` does, and `close`."""
        touching = core_loop().submit(self._list(scope, request))
        self._touching.add(touching)
        touching.add_done_callback(self._touching.discard)
        return touching

    async def touched(self) -> None:
        """Return when every read so far is counted or could not be; for those who look at what was read."""
        counted = (asyncio.wrap_future(each) for each in list(self._touching))
        await asyncio.shield(asyncio.gather(*counted, return_exceptions=True))  # a caller that gives up stops no count

    async def _list(self, scope: Scope, request: ListRequest) -> Page:
        if request.order == "accessed":
            await self.touched()
        return await (await self.ready()).list(scope, request)

    async def _close(self) -> None:
        if self._core is not core_loop():
            self._settle_here()
        await asyncio.gather(*(each.settle() for each in list(self._background)))
        with suppress(TimeoutError):
            await asyncio.wait_for(self.touched(), _COUNTING_SECONDS)
        async with self._opening:
            self._closed = True
            store, self._store = self._store, None
            self._adding = self._listing = None
        _open_memories.discard(self)
        if self._let_go is not None:
            self._let_go.detach()
        if store is not None:
            await store.close()

    def _make_store(self) -> Store:
        if not isinstance(self._given, str | os.PathLike):
            return self._given
        # Imported on first use: numpy and onnxruntime must not slow down `import memory_core`.
        from memory_core.storage.sqlite.store import SqliteStore  # noqa: PLC0415

        embedder = made_or_none(self._embedder)
        return SqliteStore(
            self._given,
            embedder=embedder,
            clock=self.clock,
            chunker=self._chunker,
            quota=self._quota,
            cache_bytes=self._cache_bytes,
            read_only=self._read_only,
        )

    async def _reembed(self, embedder: Embedder | Default, progress: ProgressCallback | None) -> int:
        store = await self.ready()
        if not isinstance(store, Reembedding):
            raise InvalidInputError(
                f"a {type(store).__name__} cannot be re-embedded in place; copy its records to a store made with the "
                "new embedder"
            )
        began, made_with = time.perf_counter(), made(embedder)
        logger.info("re-embedding %s with %s", self._place(), made_with.fingerprint.name)
        count = await store.reembed(made_with, progress)
        self._embedder = made_with
        logger.info("re-embedded %s: %d vectors in %.1f s", self._place(), count, time.perf_counter() - began)
        return count

    def _place(self) -> str:
        """Its location, as logs and `repr` show it; never the address of a server, which may contain a key."""
        given = self._given
        return repr(os.fspath(given)) if isinstance(given, str | os.PathLike) else type(given).__name__


_open_memories: weakref.WeakSet[Memory] = weakref.WeakSet()
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
    for memory in _open_memories:
        memory._touching.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    _open_memories.clear()
    _closing.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


@atexit.register
def _close_forgotten() -> None:
    """Close unclosed memories, so that the write-ahead log is merged into the file; wait a limited time only."""
    waiting = {core_loop().submit(memory.close()) for memory in list(_open_memories)}
    concurrent.futures.wait(waiting | _closing, timeout=EXIT_SECONDS)
