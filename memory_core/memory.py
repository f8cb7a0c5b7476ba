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

import logging
import os
import time
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from memory_core.chunking import DEFAULT_CHUNKER, Chunker
from memory_core.concurrency.loop import core_loop, on_core
from memory_core.concurrency.sync import run_sync
from memory_core.handle import BoundMemory
from memory_core.hints import no_attribute
from memory_core.models import Quota, Scope
from memory_core.open_store import OpenStore
from memory_core.operation import OPERATIONS
from memory_core.operator import Operator
from memory_core.protocols import Store
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
from memory_core.storage.optional import maintained
from memory_core.supplied import Clock, Embedder, Reranker
from memory_core.values.limits import CACHE_BYTES
from memory_core.values.progress import ProgressCallback
from memory_core.values.times import utc_now
from memory_core.values.zones import check_zone

logger = logging.getLogger(__name__)


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
        zone: The zone of the people whose memories these are, unless a handle says it (`bind(zone=)`): a `tzinfo`, the
            name of a zone such as `"Europe/Oslo"`, or an offset. A time that comes in UTC or not at all gets it, so
            that "today" is their day.
        quota: Limits what each owner can store; a write beyond it raises `QuotaExceededError`. For a file.
        cache_bytes: The bytes of the indexes of owners that stay in memory, all owners of the file together; that of an
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
        zone: tzinfo | str = UTC,
        quota: Quota | None = None,
        cache_bytes: int = CACHE_BYTES,
        read_only: bool = False,
    ) -> None:
        insist_on_kinds(store, embedder)
        insist_on_file(store, quota, cache_bytes, read_only=read_only)
        self._embedder = embedder
        clock = utc_clock(clock)
        make = partial(
            _made_store,
            store,
            embedder,
            clock=clock,
            chunker=chunker,
            quota=quota,
            cache_bytes=cache_bytes,
            read_only=read_only,
        )
        reranking = None if reranker is None else made_reranking(reranker)
        path = os.fspath(store) if isinstance(store, str | os.PathLike) else None
        self._open_store = OpenStore(
            _place(store), make, clock=clock, reranking=reranking, zone=check_zone(zone), path=path
        )
        core_loop()  # starts a thread: better here than inside a coroutine

    def __repr__(self) -> str:
        embedder = self._embedder if isinstance(self._embedder, Default | None) else type(self._embedder).__name__
        return f"<Memory {self._open_store.place}, embedder={embedder}, {self._open_store.state}>"

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
        zone: tzinfo | str | None = None,
    ) -> BoundMemory:
        """A handle that reaches only the memories of one owner, `(app, user)`.

        Agent, session and collection, if given, are set on every write and required of every read. Without `user` the
        handle is open: bind it to a user before using it. `zone` says where the person is, as for `Memory`.

        Raises:
            ScopeError: A key is empty, blank, too long, or not a string.
            InvalidInputError: There is no such zone.
        """
        scope = Scope(app=app, user=user, agent=agent, session=session, collection=collection)
        return BoundMemory(self._open_store, scope, None if zone is None else check_zone(zone))

    def operator(self) -> Operator:
        """All owners at once, for its operator: a command line, a studio, a migration; never an adapter."""
        return Operator(self._open_store)

    async def open(self) -> Self:
        """Open the store now instead of on first use, so that errors appear here.

        Raises:
            StorageError: The file is not a memory store, is newer than this library, or cannot be written.
            FingerprintError: Its vectors were made by another embedder.
        """
        await on_core(self._open_store.ready)
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
            UnsupportedError: The store cannot do it; a SQLite file and Qdrant can.
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
            InvalidInputError: The path exists already.
            UnsupportedError: The store cannot do it; a SQLite file and a memory in memory can.
            DamagedStoreError: The memory is damaged; no copy was made.
            StorageError: The copy cannot be written, or a check finds something else that is wrong with the memory.
        """

        async def on_store() -> Path:
            store = await self._open_store.ready()
            return await maintained(store).backup(path, overwrite=overwrite, progress=progress)

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
            StorageError: The backup cannot be read, a check finds something else that is wrong with it, or the file
                cannot be written.
        """
        from memory_core.storage.sqlite.backup import restore  # noqa: PLC0415  (numpy)

        return await on_core(partial(restore, backup, path, overwrite=overwrite, progress=progress))

    async def close(self) -> None:
        """Finish accepted writes and release files and models. Closing twice is fine.

        A memory that is dropped without `close` is closed in the background when Python collects it.
        """
        await self._open_store.close()

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

    async def _reembed(self, embedder: Embedder | Default, progress: ProgressCallback | None) -> int:
        store = await self._open_store.ready()
        kept = maintained(store)
        began, made_with = time.perf_counter(), made(embedder)
        logger.info("re-embedding %s with %s", self._open_store.place, made_with.fingerprint.name)
        count = await kept.reembed(made_with, progress)
        self._embedder = made_with
        logger.info("re-embedded %s: %d vectors in %.1f s", self._open_store.place, count, time.perf_counter() - began)
        return count


def _made_store(
    given: str | os.PathLike[str] | Store,
    embedder: Embedder | Default | None,
    *,
    clock: Clock,
    chunker: Chunker,
    quota: Quota | None,
    cache_bytes: int,
    read_only: bool,
) -> Store:
    if not isinstance(given, str | os.PathLike):
        return given
    # Imported on first use: numpy and onnxruntime must not slow down `import memory_core`.
    from memory_core.storage.sqlite.store import SqliteStore  # noqa: PLC0415

    return SqliteStore(
        given,
        embedder=made_or_none(embedder),
        clock=clock,
        chunker=chunker,
        quota=quota,
        cache_bytes=cache_bytes,
        read_only=read_only,
    )


def _place(given: str | os.PathLike[str] | Store) -> str:
    """Its location, as logs and `repr` show it; never the address of a server, which may contain a key."""
    return repr(os.fspath(given)) if isinstance(given, str | os.PathLike) else type(given).__name__
