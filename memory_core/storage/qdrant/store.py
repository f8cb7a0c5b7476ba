"""The scale-out store. Read this file first: it shows how the modules of this folder work together."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from memory_core.chunking import DEFAULT_CHUNKER, Chunker
from memory_core.concurrency.loop import off_loop
from memory_core.errors import ConflictError, EmbeddingError, StorageError, UnsupportedError, reason_for_log
from memory_core.models import (
    Deleted,
    ErasureReceipt,
    Finding,
    Hit,
    Known,
    MemoryRecord,
    Page,
    Patch,
    Scope,
    Stats,
    Version,
)
from memory_core.records.draft_to_record import insist_on_version, is_long_patch, patched
from memory_core.requests import ListRequest, SearchRequest
from memory_core.retrieval.owner_index import first_name
from memory_core.retrieval.question import parse
from memory_core.storage.qdrant import adding, background, deriving, erasing, listing, schema, searching, superseding
from memory_core.storage.qdrant.background import Background
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Names, Stored, token
from memory_core.storage.qdrant.connection import Connection
from memory_core.storage.qdrant.meta import Meta, vector_name
from memory_core.storage.qdrant.owners import Access, Owner, matching
from memory_core.storage.qdrant.points import Points
from memory_core.storage.qdrant.searching import Search
from memory_core.storage.qdrant.settings import IN_MEMORY, Layout, Patience, Server, from_uri, to_server
from memory_core.storage.qdrant.transfer import QdrantPort
from memory_core.storage.shared.embedding_batches import with_vectors
from memory_core.storage.shared.merging import owner_of
from memory_core.storage.shared.prepared import prepare, prepare_all
from memory_core.storage.shared.query_vector import Vector, query_vector
from memory_core.storage.shared.versions import versions_of
from memory_core.supplied import Clock, Embedder
from memory_core.values.long_texts import is_long
from memory_core.values.progress import ProgressCallback
from memory_core.values.times import utc_now
from memory_core.where.where import ANY_STATE, Where

logger = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_COLLECTION = "memory-core"


class QdrantStore:
    """Records with their vectors and words in one collection of a Qdrant server, shared by any number of processes.

    Each record is one point and changes in one conditional request. A batch is no transaction: what ends in the
    middle raises `UnfinishedWriteError`, which names what is stored or deleted.

    Args:
        server: A URL, a `Server`, or for tests `":memory:"` or a folder. Missing settings come from the environment
            (`QDRANT_URL`, or `QDRANT_HOST` and `QDRANT_PORT`; `QDRANT_API_KEY`).
        embedder: Owned by the store from here on; `None` for search by words only.
        collection: The prefix of the names of its collections; stores with different prefixes share nothing.
        layout: The form of new collections.
        patience: The time for which a request is tried.
        chunker: Splits the texts that are written from here on.
    """

    atomic_batches: ClassVar[bool] = False
    """True if a call that writes several records stores all or none of them; see `protocols.Writes`."""

    def __init__(
        self,
        server: str | os.PathLike[str] | Server | None = None,
        *,
        embedder: Embedder | None,
        clock: Clock = utc_now,
        collection: str = DEFAULT_COLLECTION,
        layout: Layout | None = None,
        patience: Patience | None = None,
        chunker: Chunker = DEFAULT_CHUNKER,
    ) -> None:
        self._server = to_server(server).resolved()
        self._embedder = embedder
        self._clock = clock
        self._name = collection
        self._layout = layout or Layout()
        self._patience = patience or Patience()
        self._chunker = chunker
        self._prepare = partial(prepare, chunker=chunker)
        self._to_close = AsyncExitStack()
        self._background: Background | None = None

    @classmethod
    def from_uri(cls, uri: str, *, embedder: Embedder | None) -> Self:
        """A store at `qdrant://[key@]host[:port][/collection][?grpc=true]`; `qdrant+https://` uses TLS."""
        server, collection = from_uri(uri)
        return cls(server, embedder=embedder, collection=collection or DEFAULT_COLLECTION)

    async def open(self) -> None:
        """Connect to the server, create or complete the collections, and start the background work.

        Raises:
            StorageError: The server cannot be reached, ignores conditions on writes, or its collections cannot be used.
            NotAStoreError: Another program, or a development version, made the collections.
            InvalidInputError: The collections exist with another layout.
            FingerprintError: Its vectors were made by another embedder.
            NewerStoreError: A newer version of this library wrote it.
        """
        try:
            if self._embedder is not None:
                self._to_close.push_async_callback(self._close_embedder)
            self._connection = Connection(self._server, self._patience)
            self._to_close.push_async_callback(self._connection.close)
            await self._connection.open()
            await schema.ensure_meta(self._connection, self._name, self._layout)
            meta = Meta(Points(self._connection, schema.meta_name(self._name), self._layout))
            found = await meta.claim(None if self._embedder is None else self._embedder.fingerprint)
            await schema.ensure_records(self._connection, self._name, self._layout, found.fingerprint)
            records = Points(self._connection, self._name, self._layout)
            self._access = Access(records, meta, Names(found.secret), found.fingerprint, self._chunker)
            self._to_close.push_async_callback(self._access.finished)
            self._background = Background(self._access, self._embedder, self._clock)
            self._to_close.push_async_callback(self._background.close)
        except BaseException:  # a cancelled caller included
            await self.close()
            raise

    async def close(self) -> None:
        """Finish accepted writes and release connections and embedder; may be called twice."""
        await self._to_close.aclose()

    async def _close_embedder(self) -> None:
        if self._embedder is not None:
            await self._embedder.close()

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        """See `Store.add`.

        Raises:
            UnfinishedWriteError: The server failed, and some of the records are stored, or perhaps are.
        """
        embedder = None if embed_later else self._embedder
        return await self._add(scope, records, embedder, versions=versions)

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        """See `Store.search`."""
        run, now = self._access.run_together, self._clock()
        if request.mode == "substring":
            return await run(scopes, lambda owners: listing.containing(owners, request, now))
        query = await off_loop(is_long(request.text), parse, request.text, request.today)
        names: Collection[str] = ()
        if self._embedder is not None and request.mode != "lexical" and request.vector is None and query.names:
            names = {first_name(author) for author in await run(scopes, searching.participants)} & set(query.names)
        embedder, vector = await self._query_vector(request, names)
        using = "" if embedder is None else vector_name(embedder.fingerprint)
        return await run(scopes, lambda owners: searching.ranked(Search(owners, request, query, vector, using, now)))

    async def _query_vector(
        self, request: SearchRequest, names: Collection[str]
    ) -> tuple[Embedder | None, Vector | None]:
        """The vector of a request and its embedder, which `reembed` may replace and close meanwhile."""
        while True:
            embedder = self._embedder
            try:
                return embedder, await query_vector(embedder, request, names)
            except EmbeddingError:
                if self._embedder is embedder:
                    raise

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        """See `Store.update`."""
        now, write = self._clock(), token()
        known = await self._access.run(scope, lambda owner: listing.existing(owner, id, now))
        made = await off_loop(is_long_patch(patch), lambda: self._prepare(patched(known.record, patch, now)))
        if self._embedder is not None and known.record.text != made.record.text:
            (made,) = await with_vectors(self._embedder, [made])

        reinstated: superseding.Heirs = {}

        async def work(owner: Owner) -> MemoryRecord:
            nonlocal reinstated
            current = await listing.existing(owner, id, now)
            if write in current.writes:  # an earlier attempt was stored after all
                return current.record
            try:
                insist_on_version(current.record, expected_version)
            except ConflictError:
                await superseding.close(owner, dict.fromkeys(reinstated, current.record))
                raise
            record = patched(current.record, patch, now)
            if record is not current.record:
                record = await deriving.as_changed(owner, current.record, record, patch)
                item = made if record == made.record else made.again(record)
                reinstated = await superseding.reinstate(owner, current.record, record)
                await adding.update(owner, current, item, write)
            return record

        async def whole(owner: Owner) -> MemoryRecord:
            after = await self._access.run(scope, work)
            if (after.rev, after.left) != (known.record.rev, known.record.left):
                await deriving.follow(owner, after)
            await deriving.uncover(owner, known.record, after)
            return after

        return await self._write(scope, whole)

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
        deletion = erasing.Deletion(forget, versions, keeps_derived=keeps_derived)
        await self._delete(scope, where, deletion, expired=False)
        return Deleted(len(deletion.named), len(deletion.gone) - len(deletion.named))

    async def put(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        remove: Collection[str],
        embed_later: bool,  # noqa: ARG002  (a point keeps its vectors, so those of what did not change are read first)
    ) -> list[MemoryRecord]:
        """See `Store.put`; removes after everything is written."""
        stored = await self._add(scope, records, self._embedder, is_put=True, remove=remove)
        return [record for record in stored if record is not None]

    async def collections(self, scope: Scope, where: Where) -> list[str]:
        """See `LeanReads.collections`."""
        return await self._access.run(scope, lambda owner: listing.collections(owner, where, self._clock()))

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """See `Store.postpone`."""
        await self._write(scope, lambda owner: erasing.postpone(owner, expiries, self._clock()))

    async def sweep(self, scope: Scope) -> int:
        """See `Store.sweep`."""
        swept = await self._write(scope, lambda owner: erasing.sweep_owner(owner, self._clock()))
        logger.info("swept %d expired records", swept)
        return swept

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """See `Store.erase`; `files_clean` is false if there are files: a server keeps deleted points in them until
        its next optimization, which the client cannot check."""
        now, deletion = self._clock(), erasing.Deletion(forget=True)
        if scope == owner_of(scope):
            gone: Collection[Stored] = await self._write(scope, lambda owner: erasing.erase(owner, now))
        else:
            await self._delete(scope, ANY_STATE, deletion, expired=True)
            gone = deletion.named
            late = erasing.Deletion(forget=False)
            await self._write(scope, lambda owner: erasing.attempt_late(owner, late, now))
            deletion.derived |= late.gone.keys()
        sessions = {item.record.session for item in gone} - {None}
        clean = self._server.path == IN_MEMORY
        return ErasureReceipt(len(gone), len(sessions), now, clean, len(deletion.derived))

    def port(self) -> QdrantPort:
        """The store for export and import."""
        return QdrantPort(self._access, self._clock, self._write)

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None = None) -> int:
        """See `Maintained.reembed`. Other processes have to be opened again with the new embedder: what they write
        until then is found by its words, and by its meaning once the store is opened again.

        Raises:
            EmbeddingError: The embedder failed; the old vectors stay in use.
            FingerprintError: Another process has changed the embedder meanwhile.
            UnsupportedError: The server cannot add a vector to a collection; releases before 1.18 cannot.
        """
        count = await background.change_embedder(self._access, embedder, progress)
        self._access.fingerprint = embedder.fingerprint
        old, self._embedder = self._embedder, embedder
        if self._background is not None:
            self._background.wake(embedder)
        if old is None:
            self._to_close.push_async_callback(self._close_embedder)
        elif old is not embedder:
            await old.close()
        await self._access.finished()  # the writes that may still store vectors of the old embedder
        try:
            await background.mark_lacking(self._access)
        except StorageError as error:  # too late to go back
            logger.warning("some records may lack vectors until the store is opened again: %s", reason_for_log(error))
        self._wake()
        return count

    async def stats(self, scope: Scope, where: Where) -> Stats:
        """See `LeanReads.stats`."""
        has = self._embedder is not None
        return await self._access.run(scope, lambda owner: listing.count(owner, where, self._clock(), has_embedder=has))

    async def owners(self) -> list[Scope]:
        """See `Maintained.owners`."""
        return await self.port().owners()

    async def probe(self) -> None:
        """See `Maintained.probe`."""
        await self._access.points.shared.probe()

    async def check(self) -> list[Finding]:
        """See `Maintained.check`: the server's status, which checks its files, and what dead writers left half-done."""
        found: list[Finding] = []
        for name in (self._name, schema.meta_name(self._name)):
            info = await self._connection.call(lambda client, name=name: client.get_collection(name))
            if info.status == models.CollectionStatus.RED:
                found.append(Finding(f"collection {name!r} has failed: {info.optimizer_status}"))
        claims = len(await superseding.left_behind(self._access))
        if claims:
            said = f"{claims} records are claimed by writers that have not superseded them; vacuum repairs them"
            found.append(Finding(said))
        return found

    async def vacuum(self, *, scrub: bool = False) -> bool:
        """See `Maintained.vacuum`: repairs what dead writers left half-done; the server returns the space itself, and
        does not say when nothing remains of deleted points."""
        if scrub:
            return False
        repaired = await superseding.repair(self._access, self._clock())
        logger.info("repaired %d records that dead writers left half-done", repaired)
        return False

    async def backup(
        self,
        path: str | os.PathLike[str],  # noqa: ARG002  (it has none of what is asked for)
        *,
        overwrite: bool,  # noqa: ARG002
        progress: ProgressCallback | None,  # noqa: ARG002
    ) -> Path:
        """See `Maintained.backup`; a server has snapshots.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("use the snapshots of its server to back up a QdrantStore")

    async def pending(self, scope: Scope) -> int:
        """See `LeanReads.pending`."""
        return (await self.stats(scope, ANY_STATE)).vectors_pending

    async def known(self, scope: Scope, keys: Sequence[str] | None) -> list[Known]:
        """See `LeanReads.known`."""
        return await self._access.run(scope, lambda owner: listing.known(owner, keys, self._clock()))

    async def versions(self, scope: Scope, id: str) -> list[Version]:  # noqa: A002
        """See `Store.versions`."""
        known = await self._access.run(scope, lambda owner: listing.one(owner, id, self._clock()))
        return [] if known is None else versions_of(known.record, known.revisions)

    async def _add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        embedder: Embedder | None,
        *,
        is_put: bool = False,
        remove: Collection[str] = (),
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        if not records and not remove:
            return []
        items = await prepare_all(self._prepare, records)
        if embedder is not None:
            kept = await self._access.run(scope, lambda owner: adding.unchanged(owner, items, is_put=is_put))
            items = await with_vectors(embedder, items, kept=kept)
        now, made = self._clock(), token()
        write = partial(adding.write, items=items, token=made, now=now, is_put=is_put, remove=remove, versions=versions)
        return await self._write(scope, write, alone=is_put)

    async def _delete(
        self, scope: Scope, where: Where, deletion: erasing.Deletion, *, expired: bool
    ) -> Collection[Stored]:
        now = self._clock()

        async def work(owner: Owner) -> Collection[Stored]:
            return await deletion.attempt(owner, await matching(owner, where, None if expired else now), now)

        try:
            return await self._write(scope, work)
        except (ConflictError, StorageError) as failure:
            raise deletion.ended_by(failure) from failure

    async def _write(
        self, scope: Scope, attempt: Callable[[Owner], Coroutine[Any, Any, T]], *, alone: bool = True
    ) -> T:
        """Run a write of one owner; once begun, it completes even if cancelled. With `alone` one at a time in this
        process, because it changes points that others of its kind change too."""

        async def work() -> T:
            async with self._access.lock(scope) if alone else nullcontext():
                return await self._access.run(scope, attempt)

        try:
            return await self._access.finish(work())
        finally:
            self._wake()

    def _wake(self) -> None:
        if self._background is not None:
            self._background.wake()

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        """See `Store.list`."""
        now = self._clock()

        async def read(owner: Owner) -> Page:
            page, stored = await listing.page([owner], request, now)
            return replace(page, records=await listing.touch(owner, stored, now)) if request.touch else page

        return await (self._write(scope, read) if request.touch else self._access.run(scope, read))
