"""Share one open file between all stores of a process: its connections, writer, caches and background tasks.

A second set of connections would cost threads, descriptors and memory, and two writers would wait for each other. Files
are identified by device and inode, not by path, and reference-counted. See `docs/decisions/0007-one-open-file.md`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from memory_core.chunking import Chunker
from memory_core.concurrency.threads import in_thread
from memory_core.errors import FingerprintError, InvalidInputError, StoreUnavailableError
from memory_core.models import Fingerprint
from memory_core.storage.shared.prepared import Prepared, prepare
from memory_core.storage.sqlite import meta, upkeep
from memory_core.storage.sqlite.adding import AddQueue, Batch, embedded
from memory_core.storage.sqlite.connection import IN_MEMORY, Connection, connect
from memory_core.storage.sqlite.file_identity import Identity
from memory_core.storage.sqlite.files import find_or_create, prepare_file
from memory_core.storage.sqlite.fork_gate import inside_sqlite
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.hidden import Hidden
from memory_core.storage.sqlite.owner_index_cache import KnownNames, OwnerIndexes
from memory_core.storage.sqlite.owners import pending_in_all
from memory_core.storage.sqlite.pending_vectors import PendingVectors
from memory_core.storage.sqlite.process_queue import WriterQueue, turn_in_place
from memory_core.storage.sqlite.read_connection import connect_for_reading
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.reanalysis import Reanalysis, is_due
from memory_core.storage.sqlite.reembedding import collect, switch
from memory_core.supplied import Embedder
from memory_core.values.progress import ProgressCallback

T = TypeVar("T")


class Wanted(NamedTuple):
    """The settings with which a store opens its file."""

    embedder: Embedder | None
    chunker: Chunker
    cache_bytes: int


class SharedFile:
    """The open parts of one file, shared by its stores. Used on the core loop only; see `borrow` and `give_back`."""

    def __init__(self, path: str, which: Identity | None, wanted: Wanted) -> None:
        self.path = path
        self.which = which
        """`None` for a database in memory, which is never shared."""
        self.embedder = wanted.embedder
        self.owner_indexes = OwnerIndexes(_fingerprint(wanted.embedder), wanted.cache_bytes)
        self.names = KnownNames()
        self.pending_vectors: PendingVectors | None = None
        self.prepare = partial(prepare, chunker=wanted.chunker)
        self.users = 0
        """The number of stores that use it."""
        self._chunker = wanted.chunker
        self._queue = None if which is None else WriterQueue(Path(f"{path}-turn"))
        self._turn: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered for every commit."""
        if self._queue is not None and which is not None:
            self._turn = partial(turn_in_place, self._queue, path, which)
        self.is_claimed = False
        """True if the file is known to store vectors of this embedder. A file without vectors is claimed by the next
        text that is written to it, not by opening or searching it."""
        self._claiming = asyncio.Lock()
        self._switching = asyncio.Lock()
        """Locked while the file gets the vectors of another embedder and this process switches to that embedder."""
        self._to_close = AsyncExitStack()
        self.connections: list[Connection] = []
        """The open connections."""

    async def open(self) -> None:
        """Open the connections and start the tasks; on failure or cancellation everything is closed again."""
        try:
            _open_files.add(self)
            await self._open()
        except BaseException:  # a cancelled caller included
            await self.close()
            raise

    async def close(self) -> None:
        """Finish accepted writes and close everything; may be called twice."""
        async with self._switching:
            try:
                await self._to_close.aclose()
            finally:
                _open_files.discard(self)
        await close_embedder(self.embedder)

    def admit(self, wanted: Wanted) -> None:
        """Share the file with another store; its cache holds what the most generous of them allows.

        Raises:
            FingerprintError: The embedders differ.
            InvalidInputError: The chunkers differ.
        """
        way_out = "use one Memory for all of them, or close the other first"
        here, there = _fingerprint(self.embedder), _fingerprint(wanted.embedder)
        if here != there:
            raise FingerprintError(
                f"this process has {self.path!r} open with {_named(here)}, so it cannot be opened with {_named(there)} "
                f"at the same time; give both memories the same embedder, {way_out}"
            )
        if self._chunker != wanted.chunker:
            raise InvalidInputError(
                f"this process has {self.path!r} open with {self._chunker!r}, so it cannot be opened with "
                f"{wanted.chunker!r} at the same time; give both memories the same chunker, {way_out}"
            )
        self.owner_indexes.max_bytes = max(self.owner_indexes.max_bytes, wanted.cache_bytes)
        self.users += 1

    async def embedded(self, batches: Sequence[Batch]) -> list[list[Prepared]]:
        """Return the batches with vectors, or without them if there is no embedder or it fails."""
        return await embedded(self.embedder, self.reader, batches)

    async def claim(self) -> None:
        """Make this embedder the one of the file's vectors; called before a text is written.

        Raises:
            FingerprintError: The file has vectors of another embedder by now.
        """
        embedder = self.embedder
        if embedder is None or self.is_claimed:
            return
        async with self._claiming:
            if not self.is_claimed:
                await self.writer.write(lambda db: meta.claim(db, embedder.fingerprint))
                await self.searching_embedder()

    async def searching_embedder(self) -> Embedder | None:
        """The embedder with whose vectors the file can be searched; `None` while it has none.

        Raises:
            FingerprintError: The file has vectors of another embedder by now.
        """
        embedder = self.embedder
        if embedder is None or self.is_claimed:
            return embedder
        if not await self.reader.run(lambda db: meta.is_claimed(db, embedder.fingerprint)):
            return None
        if not self.is_claimed:  # nor by another caller meanwhile
            self._serve_vectors(embedder)
        return embedder

    async def probe(self) -> int:
        """Write to the file, which changes no record; returns how many vectors are pending.

        Raises:
            StorageError: A write would fail now.
        """
        await self.writer.write(upkeep.probe)
        return await self.reader.run(pending_in_all)

    async def alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work that takes the write lock itself, when it is this process's turn."""
        return await self.write_connection.run(partial(self._in_turn, work))

    @asynccontextmanager
    async def second_reader(self) -> AsyncGenerator[Connection]:
        """A connection for long reads. Searches do not wait for it, except in an in-memory database."""
        if self.path == IN_MEMORY:
            yield self.write_connection
            return
        connection = await connect_for_reading(Path(self.path))
        self.connections.append(connection)
        try:
            yield connection
        finally:
            await self._disconnect(connection)

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None) -> int:
        """See `Memory.reembed`."""
        made = await collect(self.reader, self.writer, embedder, progress)
        # The caller may be cancelled, but the switch of the file and of the process must not be separated.
        await asyncio.shield(asyncio.create_task(self._turn_to(embedder), name="memory-core switch"))
        return made

    async def has_turned_from(self, embedder: Embedder | None) -> bool:
        """True if another embedder has replaced this one, so that what failed may succeed now."""
        async with self._switching:
            return self.embedder is not embedder

    async def _open(self) -> None:
        in_memory = self.which is None
        self.write_connection = await self._connect(None if in_memory else prepare_file)
        # An in-memory database is visible to its own connection only, so that connection reads and writes.
        first = self.write_connection if in_memory else await self._connect()
        self.reader = Readers(first, None if in_memory else self._connect_another, self._disconnect)
        self._to_close.push_async_callback(self.reader.close)
        self.writer = Writer(
            self.write_connection, self._wake_pending_vectors, self._wake_hidden, upkeep.tidy, self._turn
        )
        self.hidden = Hidden(self.writer)
        self._to_close.push_async_callback(self.writer.close)
        self._to_close.push_async_callback(self.hidden.close)
        self.add_queue = AddQueue(self.writer, self.prepare, self.embedded, self.claim)
        self._to_close.push_async_callback(self.add_queue.close)
        await self.searching_embedder()
        if not in_memory and await self.reader.run(is_due):
            self._to_close.push_async_callback(Reanalysis(self.writer).close)

    async def _connect(self, prepare: Callable[[Path], object] | None = None) -> Connection:
        connection = await self._connect_another(prepare)
        self._to_close.push_async_callback(self._disconnect, connection)
        return connection

    async def _connect_another(self, prepare: Callable[[Path], object] | None = None) -> Connection:
        """Open a connection that the caller closes."""
        connection = await connect(self.path, prepare=prepare, wanted=self.which)
        self.connections.append(connection)
        return connection

    async def _disconnect(self, connection: Connection) -> None:
        await connection.close(self._leave_queue if self.connections == [connection] else None)
        self.connections.remove(connection)

    def _in_turn(self, work: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        with self._turn():
            return work(db)

    def _leave_queue(self) -> None:
        """Leave the writers' queue; called after the last connection is closed, in its thread."""
        if self._queue is not None:
            self._queue.close(is_last=not Path(f"{self.path}-wal").exists())

    async def _turn_to(self, embedder: Embedder) -> None:
        async with self._switching:
            old, pending_vectors = self.embedder, self.pending_vectors
            if old is embedder and self.is_claimed:
                return
            await switch(self.writer, embedder.fingerprint)
            self.embedder = embedder
            self.owner_indexes = OwnerIndexes(embedder.fingerprint, self.owner_indexes.max_bytes)
            self._serve_vectors(embedder)
        if pending_vectors is not None:
            await pending_vectors.close()
        await close_embedder(old)

    def _serve_vectors(self, embedder: Embedder) -> None:
        """The file stores vectors of this embedder from now on; compute those that are pending."""
        self.is_claimed = True
        self.pending_vectors = PendingVectors(self.reader, self.writer, embedder)
        self._to_close.push_async_callback(self.pending_vectors.close)

    def _wake_hidden(self) -> None:
        self.hidden.wake()

    def _wake_pending_vectors(self) -> None:
        if self.pending_vectors is not None:
            self.pending_vectors.wake()


def _fingerprint(embedder: Embedder | None) -> Fingerprint | None:
    return None if embedder is None else embedder.fingerprint


def _named(made_by: Fingerprint | None) -> str:
    return "embedder=None" if made_by is None else f"the embedder {made_by.name} {made_by.revision}"


_open_files: set[SharedFile] = set()
"""All files that are open in this process or being opened."""
_Key = tuple[asyncio.AbstractEventLoop, Identity]
_files: dict[_Key, SharedFile] = {}
"""Open files that can be shared, by loop: memories use the core loop, a `Store` used alone may use another one."""
_locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()
"""A lock for each file that is being opened or closed."""
_of_parent: set[Identity] = set()
"""Files that SQLite regards as open in this process although they belong to its parent."""


async def borrow(path: str | os.PathLike[str], wanted: Wanted) -> SharedFile:
    """The open file for this path; opens it if this process does not have it open.

    If two callers open a file at once, the second waits, and opens it itself if the first is cancelled or fails.

    Raises:
        StorageError: The file cannot be used; nothing was changed.
        FingerprintError: The file, or another store of this process, has vectors of another embedder.
        InvalidInputError: This process has the file open with another chunker.
    """
    if os.fspath(path) == IN_MEMORY:
        private = SharedFile(IN_MEMORY, None, wanted)
        await private.open()
        private.users = 1
        return private
    finding = asyncio.create_task(in_thread(partial(_find_or_create, Path(path))), name="memory-core find")
    try:
        name, which = await asyncio.shield(finding)
    finally:
        await asyncio.wait([finding])  # nothing is created after a cancelled caller was told that it is
    if which in _of_parent:
        raise StoreUnavailableError(
            f"the memory file {str(name)!r} was open when this process was forked; fork before opening it"
        )
    key = (asyncio.get_running_loop(), which)
    async with _locks.setdefault(key, asyncio.Lock()):
        file = _files.get(key)
        if file is None:
            file = SharedFile(str(name), which, wanted)
            await file.open()
            _files[key] = file
        file.admit(wanted)
        return file


async def give_back(file: SharedFile, embedder: Embedder | None) -> None:
    """Release a store's reference; the last one closes the file. Close its embedder unless an open file uses it."""
    key = None if file.which is None else (asyncio.get_running_loop(), file.which)
    lock = asyncio.Lock() if key is None else _locks.setdefault(key, asyncio.Lock())
    async with lock:
        file.users -= 1
        try:
            if not file.users:
                await file.close()
        finally:
            if not file.users and key is not None:
                _files.pop(key, None)
        await close_embedder(embedder)


async def close_embedder(embedder: Embedder | None) -> None:
    """Close the embedder unless an open file uses it."""
    if embedder is not None and not any(file.embedder is embedder for file in _open_files):
        await embedder.close()


def _find_or_create(path: Path) -> tuple[Path, Identity]:
    with inside_sqlite.work():
        return find_or_create(path)


def _after_fork_in_child() -> None:
    """Drop the parent's connections: SQLite would assume that this process has the parent's locks."""
    for file in list(_open_files):
        for connection in file.connections:
            connection.drop()
        if file.which is not None and not inside_sqlite.was_idle:
            _of_parent.add(file.which)
    for each in (_open_files, _files, _locks):
        each.clear()
    inside_sqlite.after_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=inside_sqlite.before_fork,
        after_in_parent=inside_sqlite.after_in_parent,
        after_in_child=_after_fork_in_child,
    )
