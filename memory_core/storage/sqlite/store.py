"""The embedded store. Start reading here: it shows how the modules of this folder work together."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from memory_core.chunking import DEFAULT_CHUNKER, Chunker
from memory_core.concurrency.loop import off_loop
from memory_core.errors import (
    ClosedError,
    EmbeddingError,
    InvalidInputError,
    QuotaExceededError,
    RecordNotFoundError,
)
from memory_core.models import (
    Deleted,
    ErasureReceipt,
    Finding,
    Hit,
    Known,
    MemoryRecord,
    Page,
    Patch,
    Quota,
    Scope,
    Stats,
    Version,
)
from memory_core.records.draft_to_record import insist_on_version, is_long_patch, patched
from memory_core.requests import ListRequest, SearchRequest
from memory_core.retrieval.question import parse
from memory_core.storage.rules import adding, changing, deleting, putting
from memory_core.storage.shared.merging import is_searched_differently, owner_of
from memory_core.storage.shared.prepared import Prepared, prepare_all
from memory_core.storage.shared.query_vector import query_vector
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.sqlite import erasing, hidden, listing, owners, paging, searching, upkeep
from memory_core.storage.sqlite.deletion import Asked, Deletion, names_few
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.owner_index_cache import OwnerIndexes
from memory_core.storage.sqlite.owners import within
from memory_core.storage.sqlite.read_only import borrow_for_reading
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.rows import rows_of, rows_to_write
from memory_core.storage.sqlite.shared_file import (
    SharedFile,
    Wanted,
    borrow,
    close_embedder,
    give_back,
)
from memory_core.storage.sqlite.transfer import SqlitePort
from memory_core.supplied import Clock, Embedder
from memory_core.values.limits import CACHE_BYTES
from memory_core.values.long_texts import is_long
from memory_core.values.progress import ProgressCallback
from memory_core.where.where import Where

T = TypeVar("T")
logger = logging.getLogger(__name__)

Scopes = list[Scope]
Texts = list[str]


class SqliteStore:
    """Records, full text, vectors and change log in one SQLite file (WAL), shared by any number of processes.

    One connection writes (see `Writer`) and one reads and ranks, each in a thread of its own; a read that takes long
    goes on beside the next, which gets another connection (see `Readers`). Readers never wait for writers. All stores
    of a process on one file share them (see `SharedFile`); a store adds its clock. Call `open` before use; every method
    runs on the loop that opened the store.

    Args:
        path: The file, or `":memory:"`.
        embedder: Closed with the store; `None` keeps a store without vectors.
        chunker: Splits texts that are written from now on.
        quota: Limits for each owner.
        cache_bytes: Most bytes of the indexes of owners in memory.
        read_only: Refuse every write and do not change the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | None,
        clock: Clock,
        chunker: Chunker = DEFAULT_CHUNKER,
        quota: Quota | None = None,
        cache_bytes: int = CACHE_BYTES,
        read_only: bool = False,
    ) -> None:
        self._path = path
        self._given = embedder
        self._clock = clock
        self._quota = quota
        self._read_only = read_only
        self._wanted = Wanted(embedder, chunker, cache_bytes)
        self._borrowed: SharedFile | None = None
        self._to_close = AsyncExitStack()

    async def open(self) -> None:
        """Check, create or migrate the file and start the writer, if no other store of this process has it open.

        Raises:
            StorageError: The file cannot be used; nothing was changed.
            FingerprintError: The file, or another store of this process, has vectors of another embedder.
            InvalidInputError: Another store of this process has it open with another chunker.
        """
        try:
            await self._open()
        except BaseException:  # a cancelled caller included
            await self.close()
            raise

    async def close(self) -> None:
        """Finish accepted writes and release the file and the embedder; may be called twice.

        The file is closed with its last store, and the embedder unless an open file uses it.
        """
        await asyncio.shield(asyncio.create_task(self._to_close.aclose(), name="memory-core close"))

    @property
    def _borrow(self) -> Callable[[str | os.PathLike[str], Wanted], Awaitable[SharedFile]]:
        return borrow_for_reading if self._read_only else borrow

    async def _open(self) -> None:
        try:
            self._borrowed = file = await self._borrow(self._path, self._wanted)
        except BaseException:  # a cancelled caller included
            await close_embedder(self._given)
            raise
        self._to_close.push_async_callback(self._give_back, file)
        if not self._read_only and await self._reader.run(hidden.is_due):
            await self._shared.hidden.done()

    async def _give_back(self, file: SharedFile) -> None:
        self._borrowed = None
        await give_back(file, self._given)

    @property
    def _shared(self) -> SharedFile:
        if self._borrowed is None:
            raise ClosedError("this memory was closed; make a new Memory to open it again")
        return self._borrowed

    @property
    def _reader(self) -> Readers:
        return self._shared.reader

    @property
    def _writer(self) -> Writer:
        return self._shared.writer

    @property
    def _owner_indexes(self) -> OwnerIndexes:
        return self._shared.owner_indexes

    @property
    def _embedder(self) -> Embedder | None:
        return self._shared.embedder

    def _prepare(self, record: MemoryRecord) -> Prepared:
        return self._shared.prepare(record)

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        """See `Store.add`."""
        if not records:
            return []
        if len(records) == 1 and versions is None:
            done: asyncio.Future[MemoryRecord | None] = asyncio.get_running_loop().create_future()
            self.begin_add(scope, records[0], done, embed_later=embed_later)
            return [await done]
        await self._shared.claim()
        batch = await prepare_all(self._prepare, records)
        if not embed_later:
            (batch,) = await self._shared.embedded([(scope, batch)])

        def write(db: sqlite3.Connection) -> tuple[list[MemoryRecord | None], bool]:
            rows = rows_to_write(db, scope)
            return adding.add(rows, scope, batch, versions), rows.hides

        return await self._write(scope, write)

    def begin_add(
        self, scope: Scope, record: MemoryRecord, done: asyncio.Future[MemoryRecord | None], *, embed_later: bool
    ) -> None:
        """See `Adding.begin_add`."""
        self._shared.add_queue.put(scope, record, done, embed_later=embed_later, quota=self._quota)

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        """See `Store.search`."""
        query, now = await off_loop(is_long(request.text), parse, request.text, request.today), self._now()
        if request.mode == "substring":
            plain = searching.Search(scopes, request, query, None, None, now)
            return await searching.containing(self._reader, plain)
        # Only the owner index knows which words of the query are names; a wrong guess costs a second round, and the
        # next query guesses right.
        while True:
            embedder, owner_indexes = await self._searching_embedder(request), self._owner_indexes
            cuts_names = embedder is not None and request.mode != "lexical" and request.vector is None
            without = self._shared.names.guess(scopes, query.names) if cuts_names else None
            try:
                vector = await query_vector(embedder, request, without or ())
                found = await searching.found(
                    self._reader, owner_indexes, searching.Search(scopes, request, query, vector, without, now)
                )
            except EmbeddingError:
                if embedder is None or not await self._shared.has_turned_from(embedder):
                    raise
                continue
            if found.names is None:
                return found.hits
            self._shared.names.correct(scopes, query.names, found.names)

    async def _searching_embedder(self, request: SearchRequest) -> Embedder | None:
        """The embedder of a search.

        Raises:
            InvalidInputError: Only vectors were asked for, and the file has texts but no vectors.
        """
        found = await self._shared.searching_embedder()
        if found is None and self._embedder is not None and request.mode == "vector":
            if await self._reader.run(owners.owners):
                raise InvalidInputError(
                    "this file was written with embedder=None, so it has no vectors for mode='vector' to compare; "
                    "compute them with `await memory.reembed(embedder)`, or search with mode='lexical' or 'hybrid'"
                )
            return self._embedder  # an empty file: nothing is found
        return found

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        """See `Store.update`."""
        now = self._clock()
        known = await self._reader.run(lambda db: listing.one(db, scope, id, micros(now)))
        if known is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        insist_on_version(known[2], expected_version)  # before its vectors are computed
        item = await off_loop(is_long_patch(patch), self._patched, known[2], patch, now)
        if is_searched_differently(known[2], item.record):
            await self._shared.claim()
            ((item,),) = await self._shared.embedded([(scope, [item])])

        def change(db: sqlite3.Connection) -> tuple[MemoryRecord, bool]:
            rows = rows_of(db, scope)
            return changing.update(rows, scope, patch, item, now, expected_version), rows.hides

        return await self._write(scope, change)

    def _patched(self, record: MemoryRecord, patch: Patch, now: datetime) -> Prepared:
        return self._prepare(patched(record, patch, now))

    async def delete(
        self,
        scope: Scope,
        where: Where,
        *,
        forget: bool,
        versions: Mapping[str, int] | None = None,
        keeps_derived: bool = False,
    ) -> Deleted:
        """See `Store.delete`."""
        now = self._clock()
        if versions is None and not names_few(where):
            asked = Asked(scope, where, now, forget=forget, keeps_derived=keeps_derived)
            return await self._delete_found(Deletion(self._reader, asked))

        def delete(db: sqlite3.Connection) -> tuple[Deleted, bool]:
            rows = rows_of(db, scope)
            gone = deleting.delete(
                rows, scope, where, now, forget=forget, versions=versions, keeps_derived=keeps_derived
            )
            return gone, rows.hides

        return await self._done(await self._writer.write(delete))

    async def _delete_found(self, deletion: Deletion) -> Deleted:
        while (work := await deletion.next()) is not None:
            batch = await self._writer.write(work)
            deletion.note(await self._done((batch, batch.hides)))
        return deletion.deleted

    async def _write(self, scope: Scope, work: Callable[[sqlite3.Connection], tuple[T, bool]]) -> T:
        """A write within the quota; if it is beyond, everything that has expired gives way first."""
        guarded = within(self._quota, scope, work)
        try:
            written = await self._writer.write(guarded)
        except QuotaExceededError:
            if not await self.sweep(owner_of(scope)):
                raise
            written = await self._writer.write(guarded)
        return await self._done(written)

    async def _done(self, written: tuple[T, bool]) -> T:
        """The result of a write, once nothing is hidden any more."""
        result, hides = written
        if hides:
            await self._shared.hidden.done()
        return result

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str], embed_later: bool
    ) -> list[MemoryRecord]:
        """See `Store.put`."""
        if not records and not remove:
            return []
        await self._shared.claim()
        batch = await prepare_all(self._prepare, records)
        if not embed_later:
            (batch,) = await self._shared.embedded([(scope, batch)])
        now = self._clock()

        def put(db: sqlite3.Connection) -> tuple[list[MemoryRecord], bool]:
            rows = rows_to_write(db, scope)
            return putting.put(rows, scope, batch, remove, now), rows.hides

        return await self._write(scope, put)

    async def collections(self, scope: Scope, where: Where) -> Texts:
        """See `LeanReads.collections`."""
        now = self._now()
        return await self._reader.run(lambda db: listing.collections(db, scope, where, now), of=[scope])

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """See `Store.postpone`."""
        now = self._clock()
        if expiries:
            await self._writer.write(lambda db: putting.postpone(rows_of(db, scope), scope, expiries, now))

    async def sweep(self, scope: Scope) -> int:
        """See `Store.sweep`."""
        now = self._clock()
        swept = 0
        while count := await self._writer.write(lambda db: deleting.sweep(rows_of(db, scope), scope, now)):
            swept += count
        logger.info("swept %d expired records", swept)
        return swept

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """See `Store.erase`: deletes the records and every trace of them in the files."""
        now = self._clock()
        gone = await self._writer.write(lambda db: erasing.remove(db, scope, now))
        if gone.hides:
            await self._shared.hidden.done()
        if (owner := gone.owner) is not None:
            await self._reader.run(lambda _: self._owner_indexes.forget(owner), of=[scope], is_search=True)
        clean = await self._shared.alone(erasing.scrub)
        return ErasureReceipt(gone.records, gone.sessions, now, clean, gone.derived)

    def port(self) -> SqlitePort:
        """Transfer records unchanged, in and out."""
        embedder = None if self._embedder is None else self._embedder.fingerprint
        return SqlitePort(self._reader, self._writer, self._prepare, self._shared.claim, embedder)

    async def stats(self, scope: Scope, where: Where) -> Stats:
        """See `LeanReads.stats`."""
        now = self._now()
        has_embedder = await self._shared.searching_embedder() is not None
        return await self._reader.run(
            lambda db: listing.count(db, scope, where, now, has_embedder=has_embedder), of=[scope]
        )

    async def pending(self, scope: Scope) -> int:
        """See `LeanReads.pending`."""
        if await self._shared.searching_embedder() is None:
            return 0
        now = self._now()
        return await self._reader.run(lambda db: listing.pending(db, scope, now), of=[scope])

    async def owners(self) -> Scopes:
        """See `Maintained.owners`."""
        return await self._reader.run(owners.owners)

    async def probe(self) -> int:
        """See `Maintained.probe`."""
        pending = await self._shared.probe()
        return 0 if await self._shared.searching_embedder() is None else pending

    async def check(self) -> list[Finding]:
        """See `Maintained.check`."""
        from memory_core.storage.sqlite.checking import check  # noqa: PLC0415  (few processes check a file)

        async with self._shared.second_reader() as reader:
            return await reader.run(check)

    async def backup(self, path: str | os.PathLike[str], *, overwrite: bool, progress: ProgressCallback | None) -> Path:
        """See `Maintained.backup`."""
        from memory_core.storage.sqlite.backup import copy  # noqa: PLC0415  (few processes copy a file)

        async with self._shared.second_reader() as reader:
            return await copy(reader, path, overwrite=overwrite, progress=progress)

    async def vacuum(self, *, scrub: bool = False) -> bool:
        """See `Maintained.vacuum`."""
        if scrub:
            return await self._shared.alone(erasing.scrub)
        await self._shared.alone(upkeep.vacuum)
        return False

    async def known(self, scope: Scope, keys: Sequence[str] | None) -> list[Known]:
        """See `LeanReads.known`."""
        now = self._now()
        return await self._reader.run(lambda db: listing.known(db, scope, keys, now), of=[scope])

    async def versions(self, scope: Scope, id: str) -> list[Version]:  # noqa: A002
        """See `Store.versions`."""
        now = self._now()
        return await self._reader.run(lambda db: listing.versions(db, scope, id, now), of=[scope])

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None = None) -> int:
        """See `Memory.reembed`."""
        return await self._shared.reembed(embedder, progress)

    def _now(self) -> int:
        return micros(self._clock())

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        """See `Store.list`."""
        now = self._now()
        page = await paging.read(self._reader, scope, request, now)
        if not request.touch or self._read_only or not page.records:
            return page
        touched = await self._writer.write(lambda db: listing.touch(db, scope, request.where, page.records, now))
        return replace(page, records=touched)
