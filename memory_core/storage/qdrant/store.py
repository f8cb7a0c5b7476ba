"""The scale-out store. Read this file first: it shows how the modules of this folder work together."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Self, TypeVar

from memory_core.chunking import DEFAULT_CHUNKER, Chunker
from memory_core.drafts import insist_on_version, is_long_patch, patched
from memory_core.errors import EmbeddingError, RecordNotFoundError, reason_for_log
from memory_core.limits import is_long
from memory_core.loop import off_loop
from memory_core.models import ErasureReceipt, Hit, MemoryRecord, Page, Patch, Scope, Stats, Version, utc_now
from memory_core.progress import ProgressCallback
from memory_core.protocols import Clock, Embedder, ListRequest, SearchRequest
from memory_core.retrieval.question import parse
from memory_core.retrieval.ranking import Vector
from memory_core.storage.qdrant import adding, key_value, listing, schema, searching
from memory_core.storage.qdrant.changes import Changes
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Arrivals, Stored, read_revisions, to_owner, token
from memory_core.storage.qdrant.collection import Points
from memory_core.storage.qdrant.connection import IDF_BY_OWNER, Connection
from memory_core.storage.qdrant.ledger import Ledger
from memory_core.storage.qdrant.outline import Update, outline_of_put
from memory_core.storage.qdrant.pending_vectors import PendingVectors
from memory_core.storage.qdrant.reanalysis import Reanalysis
from memory_core.storage.qdrant.settings import IN_MEMORY, Layout, Patience, Server, from_uri
from memory_core.storage.qdrant.transfer import QdrantPort
from memory_core.storage.qdrant.where import EVERYTHING
from memory_core.storage.qdrant.writing import Access, Locks, carry_out, removal, until_undisturbed
from memory_core.storage.shared.batches import is_searched_differently
from memory_core.storage.shared.prepared import (
    Prepared,
    embed,
    prepare,
    prepare_all,
    query_vector,
    texts_to_embed,
)
from memory_core.storage.shared.versions import versions_of
from memory_core.where.value import Where

logger = logging.getLogger(__name__)

T = TypeVar("T")
Records = list[MemoryRecord]
Scopes = list[Scope]
Texts = list[str]
Versions = list[Version]

DEFAULT_COLLECTION = "memory-core"
MIRROR_PATIENCE = Patience(attempts=2, deadline_seconds=5.0)
"""A mirror can read from its file, and writes again in the next round."""
MAX_OWNERS: Final = 1_000_000
"""Maximum number of listed owners, those with the most records."""


class QdrantStore:
    """Records with their vectors and words in one collection of a Qdrant server, shared by any number of processes.

    Args:
        server: A URL, a `Server`, or for tests `":memory:"` or a folder. Missing settings come from the environment
            (`QDRANT_URL`, or `QDRANT_HOST` and `QDRANT_PORT`; `QDRANT_API_KEY`).
        embedder: Owned by the store from here on; `None` for search by words only.
        collection: The prefix of the names of its collections; stores with different prefixes share nothing.
        layout: How collections are created, and the consistency of reads and writes.
        patience: How long a request is tried.
        chunker: Splits the texts that are written from here on.
    """

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
        self._server = _server(server).resolved()
        self._embedder = embedder
        self._clock = clock
        self._name = collection
        self._layout = layout or Layout()
        self._patience = patience or Patience()
        self._chunker = chunker
        self._prepare = partial(prepare, chunker=chunker)
        self._to_close = AsyncExitStack()
        self._writes: set[asyncio.Task[Any]] = set()
        self._pending_vectors: PendingVectors | None = None
        self._is_mirror = False

    @classmethod
    def from_uri(cls, uri: str, *, embedder: Embedder | None, clock: Clock = utc_now) -> Self:
        """A store at `qdrant://[key@]host[:port][/collection][?grpc=true]`; `qdrant+https://` uses TLS."""
        server, collection = from_uri(uri)
        return cls(server, embedder=embedder, clock=clock, collection=collection or DEFAULT_COLLECTION)

    @classmethod
    def mirror(cls, server: Server, *, embedder: Embedder | None, clock: Clock, collection: str) -> Self:
        """A store without background work, for a mirror."""
        store = cls(server, embedder=embedder, clock=clock, collection=collection, patience=MIRROR_PATIENCE)
        store._is_mirror = True
        return store

    async def open(self) -> None:
        """Connect to the server, create or check the collections, and start the background work.

        Raises:
            StorageError: The server cannot be reached, or its collections cannot be used.
            FingerprintError: Its vectors were made by another embedder.
            NewerStoreError: A newer version of this library wrote it.
        """
        try:
            await self._open()
        except BaseException:  # a cancelled caller included
            await self.close()
            raise

    async def close(self) -> None:
        """Finish accepted writes and release connections and embedder; may be called twice."""
        if self._writes:
            await asyncio.wait(self._writes)
        await self._to_close.aclose()

    async def _open(self) -> None:
        if self._embedder is not None:
            self._to_close.push_async_callback(self._embedder.close)
        self._connection = Connection(self._server, self._patience)
        self._to_close.push_async_callback(self._connection.close)
        await self._connection.open()
        ledger_name = schema.ledger_name(self._name)
        await schema.ensure_ledger(self._connection, ledger_name, self._layout)
        ledger = Ledger(Points(self._connection, ledger_name, self._layout))
        await ledger.insist_on_known_format()
        await ledger.probe()
        fingerprint = None if self._embedder is None else self._embedder.fingerprint
        description = await ledger.claim(schema.records_name(self._name, fingerprint), fingerprint)
        await schema.ensure_records(self._connection, description.records, self._layout, description.fingerprint)
        self._access = Access(
            records=Points(self._connection, description.records, self._layout),
            ledger=ledger,
            arrivals=Arrivals(),
            locks=Locks(),
            has_vectors=description.fingerprint is not None,
            chunker=self._chunker,
        )
        self._fingerprint = description.fingerprint
        if not self._is_mirror:
            self._pending_vectors = PendingVectors(self._access, self._embedder, self._clock)
            self._to_close.push_async_callback(self._pending_vectors.close)
            self._to_close.push_async_callback(Reanalysis(self._access.records).close)

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        progress: ProgressCallback | None = None,
    ) -> list[MemoryRecord | None]:
        """See `Records.add`."""
        if not records:
            return []
        batch = await prepare_all(self._prepare, records)
        embedded: dict[str, Prepared] = {}
        if self._embedder is not None and not embed_later:
            embedded = await adding.with_vectors(
                self._access, scope, batch, self._embedder, self._clock(), progress=progress
            )
        return await self._write(scope, lambda: adding.add(self._access, scope, batch, embedded, self._clock()))

    async def search(self, scope: Scope, request: SearchRequest) -> list[Hit]:
        """See `Records.search`."""
        request.insist_on(self._embedder)
        points = self._access.of(scope)
        now = self._clock()
        if request.mode == "substring":
            return await searching.containing(points, scope, request, now)
        vector = await self._query_vector(scope, request)
        by_owner = self._connection.version >= IDF_BY_OWNER
        query = await off_loop(is_long(request.text), parse, request.text)
        return await searching.ranked(
            points,
            searching.Search(scope, request, query, vector, now, by_owner, self._server.is_local),
        )

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        """See `Records.list`."""
        points = self._access.of(scope)
        now = self._clock()

        async def read_and_touch() -> Page:
            page, stored = await listing.page(points, scope, request, now)
            return replace(page, records=await listing.touch(points, stored, now))

        if request.touch:
            return await self._write(scope, read_and_touch)
        return (await listing.page(points, scope, request, now))[0]

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        """See `Records.update`."""
        now = self._clock()
        known = await self._one(scope, id)
        made = await off_loop(is_long_patch(patch), self._patched, known.record, patch, now)
        if self._embedder is not None and is_searched_differently(known.record, made.record) and made.chunks:
            made = await self._embedded(self._embedder, made)

        async def work() -> MemoryRecord:
            current = await self._one(scope, id)
            insist_on_version(current.record, expected_version)  # the write goes through only if this is still current
            record = patched(current.record, patch, now)
            if record is current.record:
                return record
            item = made if record == made.record else made.again(record)
            write = token()
            changes = Changes(scope)
            await adding.add_update(self._access, changes, Update(current, record), item, write)
            await carry_out(self._access, changes, write)
            return record

        return await self._write(scope, work)

    def _patched(self, record: MemoryRecord, patch: Patch, now: datetime) -> Prepared:
        return self._prepare(patched(record, patch, now))

    async def delete(self, scope: Scope, where: Where, *, forget: bool) -> int:
        """See `Records.delete`."""
        return len(await self._delete(scope, where, forget=forget, expired=False))

    async def put(self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str]) -> Records:
        """See `KeyValue.put`."""
        if not records and not remove:
            return []
        batch = await prepare_all(self._prepare, records)
        embedded: dict[str, Prepared] = {}
        if self._embedder is not None and batch:
            embedded = await adding.with_vectors(
                self._access, scope, batch, self._embedder, self._clock(), sort=outline_of_put
            )
        return await self._write(
            scope, lambda: key_value.put(self._access, scope, batch, embedded, remove=remove, now=self._clock())
        )

    async def collections(self, scope: Scope, where: Where) -> Texts:
        """See `KeyValue.collections`."""
        return await listing.collections(self._access.of(scope), scope, where, self._clock())

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """See `KeyValue.postpone`."""
        if expiries:
            await self._write(scope, lambda: key_value.postpone(self._access, scope, expiries, self._clock()))

    async def sweep(self, scope: Scope) -> int:
        """See `KeyValue.sweep`."""
        swept = await self._write(scope, lambda: key_value.sweep(self._access, scope, self._clock()))
        logger.info("swept %d expired records", swept)
        return swept

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """See `Store.erase`.

        A server keeps deleted points in its files until its next optimization, which the client cannot check, so the
        receipt says `files_clean=False` unless there is no file.
        """
        now = self._clock()
        gone = await self._delete(scope, EVERYTHING, forget=True, expired=True)
        sessions = {item.record.session for item in gone} - {None}
        return ErasureReceipt(len(gone), len(sessions), now, files_clean=self._server.path == IN_MEMORY)

    def port(self) -> QdrantPort:
        """The store for export and import."""
        return QdrantPort(self._access, self._fingerprint, self._wake_pending_vectors)

    async def stats(self, scope: Scope) -> Stats:
        """See `Counting.stats`."""
        return await listing.count(
            self._access.of(scope), scope, self._clock(), has_embedder=self._embedder is not None
        )

    async def owners(self) -> Scopes:
        """See `Maintained.owners`."""
        keys = await self._access.records.values("_owner", models.Filter(), limit=MAX_OWNERS)
        return sorted(map(to_owner, keys), key=lambda owner: (owner.app, owner.user or ""))

    async def check(self) -> Texts:
        """See `Maintained.check`: the server's status of its collections; the server checks their content itself."""
        found: list[str] = []
        for name in (self._access.records.name, schema.ledger_name(self._name)):
            info = await self._connection.call(lambda client, name=name: client.get_collection(name))
            if info.status == models.CollectionStatus.RED:
                found.append(f"collection {name!r} has failed: {info.optimizer_status}")
        return found

    async def vacuum(self) -> None:
        """See `Maintained.vacuum`: does nothing, because a server's optimizers do it in the background."""

    async def versions(self, scope: Scope, id: str) -> Versions:  # noqa: A002
        """See `Versioned.versions`."""
        known = await listing.one(self._access.of(scope), scope, id, self._clock())
        return [] if known is None else versions_of(known.record, read_revisions(known.revisions))

    async def _delete(self, scope: Scope, where: Where, *, forget: bool, expired: bool) -> Sequence[Stored]:
        async def work() -> Sequence[Stored]:
            going = await key_value.matching(self._access, scope, where, None if expired else self._clock())
            changes = await removal(self._access, scope, going)
            if forget:
                keys = (item.record.source_key for item in going)
                changes.tombstones = [self._access.ledger.tombstone(scope, key) for key in keys if key is not None]
            await carry_out(self._access, changes, token())
            return going

        return await self._write(scope, work)

    async def _write(self, scope: Scope, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a write of one owner, one at a time in this process; once begun, it completes even if cancelled."""

        async def work() -> T:
            async with self._access.locks.of(scope):
                return await until_undisturbed(self._access, scope, attempt)

        task = asyncio.create_task(work(), name="memory-core qdrant write")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        try:
            return await asyncio.shield(task)
        finally:
            self._wake_pending_vectors()

    def _wake_pending_vectors(self) -> None:
        if self._pending_vectors is not None:
            self._pending_vectors.wake()

    async def _one(self, scope: Scope, id: str) -> Stored:  # noqa: A002
        known = await listing.one(self._access.of(scope), scope, id, self._clock())
        if known is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return known

    @staticmethod
    async def _embedded(embedder: Embedder, item: Prepared) -> Prepared:
        """A changed record with vectors, or with pending ones if the embedder fails."""
        try:
            return item._replace(vectors=await embed(embedder, texts_to_embed(item.record.text, item.chunks)))
        except EmbeddingError as error:
            logger.warning("the vectors of a changed record are pending: %s", reason_for_log(error))
            return item

    async def _query_vector(self, scope: Scope, request: SearchRequest) -> Vector | None:
        names: Collection[str] = ()
        if self._embedder is not None and request.mode != "lexical" and request.vector is None:
            names = await searching.participants(self._access.of(scope), scope)
        return await query_vector(self._embedder, request, names)


def _server(given: str | os.PathLike[str] | Server | None) -> Server:
    if isinstance(given, Server):
        return given
    if given is None:
        return Server()
    text = os.fspath(given)
    return Server(url=text) if text.startswith(("http://", "https://")) else Server(path=text)
