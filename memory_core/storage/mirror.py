"""An authoritative SQLite file, and a Qdrant collection that mirrors it and answers the searches it can.

Every write goes to the file and is acknowledged when the file has it. A task reads the file's change log, copies each
owner's changes to the collection, and records its position there: a collection that is lost, or restored from a backup,
is behind and catches up automatically. An owner is searched in the collection only while the collection is up to date
with the file for that owner, which every search checks; otherwise, and whenever the server fails, the file answers.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from memory_core.errors import EmbeddingError, InvalidInputError, StorageError, StoreUnavailableError, reason_for_log
from memory_core.models import ErasureReceipt, Hit, Scope
from memory_core.protocols import Clock, Embedder, SearchRequest
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import DEFAULT_COLLECTION, QdrantStore
from memory_core.storage.shared.transfer import Position
from memory_core.storage.sqlite.connection import IN_MEMORY
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.storage.sqlite.transfer import SqlitePort
from memory_core.values.times import utc_now

logger = logging.getLogger(__name__)

BATCH: Final = 128
POLL_SECONDS: Final = 1.0
"""How often the mirror checks for writes of other processes."""
REST_SECONDS: Final = 5.0
"""How long a failed server is not contacted; searches do not wait for it meanwhile."""
ERASE_SECONDS: Final = 10.0
"""How long an erasure waits for the mirror to catch up."""


class MirroredStore(SqliteStore):
    """A SQLite file with a mirror in Qdrant.

    Any number of processes of a host can open the same file with the same mirror; one of them at a time updates it.
    Processes on other hosts can read the collection with a `QdrantStore`, but must not write to it.

    Args:
        path: The file; not `":memory:"`.
        server: The Qdrant server; missing settings come from the environment, as for `QdrantStore`.
        embedder: Owned by the store from here on.
        collection: The prefix of the names of its collections there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        server: Server | None = None,
        *,
        embedder: Embedder | None,
        clock: Clock = utc_now,
        collection: str = DEFAULT_COLLECTION,
    ) -> None:
        if os.fspath(path) == IN_MEMORY:
            raise InvalidInputError("a mirror follows a file; ':memory:' has nothing that outlives the process")
        super().__init__(path, embedder=embedder, clock=clock)
        self._file = Path(path).expanduser()
        self._server = server or Server()
        self._collection = collection
        self._follower: _Follower | None = None

    async def _open(self) -> None:
        await super()._open()
        remote = QdrantStore.mirror(
            self._server, embedder=self._embedder, clock=self._clock, collection=self._collection
        )
        self._follower = _Follower(self.port(), remote, self._file)
        self._to_close.push_async_callback(self._follower.close)
        self._shared.when_pending.append(self._follower.wake)
        self._to_close.callback(self._shared.when_pending.remove, self._follower.wake)

    async def search(self, scope: Scope, request: SearchRequest) -> list[Hit]:
        """See `Records.search`."""
        follower = self._follower
        if follower is None or request.mode == "substring" or not await follower.is_current(scope):
            return await super().search(scope, request)
        try:
            hits = await follower.remote.search(scope, request)
        except StorageError as error:
            follower.rest(error)
            return await super().search(scope, request)
        except EmbeddingError:  # perhaps because another embedder has taken its place, which only the file knows
            return await super().search(scope, request)
        current = {
            item.record.id: item.record for item in await self.port().take(scope, [hit.record.id for hit in hits])
        }
        return [replace(hit, record=current[hit.record.id]) for hit in hits if hit.record.id in current]

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """See `Store.erase`; `files_clean` is false, because the client cannot check the server's files."""
        receipt = await super().erase(scope)
        await self._mirror_deletion()
        return replace(receipt, files_clean=False)

    async def scrub(self) -> bool:
        """See `optional.Scrubbing`; `False`, because the client cannot check the server's files."""
        await super().scrub()
        await self._mirror_deletion()
        return False

    async def _mirror_deletion(self) -> None:
        try:
            await asyncio.wait_for(self.catch_up(), ERASE_SECONDS)
        except (StorageError, TimeoutError) as error:
            logger.warning("an erasure is not mirrored yet and will be retried: %s", reason_for_log(error))

    async def catch_up(self) -> None:
        """Bring the mirror up to date with the file.

        Raises:
            StorageError: The server does not answer, or its collection belongs to another store.
        """
        if self._follower is not None:
            await self._follower.catch_up()

    async def behind(self) -> int:
        """How many owners are not up to date in the mirror."""
        return 0 if self._follower is None else len(await self._follower.behind())


class _Follower:
    """The task that updates the mirror. Lives on the core loop."""

    def __init__(self, source: SqlitePort, remote: QdrantStore, file: Path) -> None:
        self.remote = remote
        self._source = source
        self._lock_file = file.with_name(f"{file.name}-mirror")
        self._positions: dict[Scope, Position] = {}
        self._is_open = False
        self._has_turn = False
        self._rests_until = 0.0
        self._wake = asyncio.Event()
        self._feeding = asyncio.Lock()
        self._to_close = AsyncExitStack()
        self._task = asyncio.create_task(self._serve(), name="memory-core mirror")

    def wake(self) -> None:
        """Signal that the file has changed."""
        self._wake.set()

    def rest(self, error: StorageError) -> None:
        """Do not contact the server for a while."""
        if time.monotonic() > self._rests_until:
            logger.warning("the file answers, the mirror does not: %s", reason_for_log(error))
        self._rests_until = time.monotonic() + REST_SECONDS
        self._is_open = False  # the server may come back with another state

    async def is_current(self, scope: Scope) -> bool:
        """Whether the mirror can answer for this owner."""
        known = self._positions.get(Scope(scope.app, scope.user))
        if known is None or time.monotonic() < self._rests_until:
            return False
        return await self._source.position(scope) == known

    async def behind(self) -> list[Scope]:
        """The owners that are not up to date in the mirror, as far as this process knows."""
        now = await self._source.positions()
        return [scope for scope in now.keys() | self._positions.keys() if now.get(scope) != self._positions.get(scope)]

    async def catch_up(self) -> None:
        """Run one round, even if the server is not being contacted at the moment."""
        async with self._feeding:
            await self._round()
            self._rests_until = 0.0

    async def close(self) -> None:
        """Stop; the next process that opens the file copies what is missing."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._to_close.aclose()
        await self.remote.close()

    async def _serve(self) -> None:
        while True:
            try:
                if time.monotonic() >= self._rests_until:
                    async with self._feeding:
                        await self._round()
            except StorageError as error:
                self.rest(error)
            except Exception as error:  # noqa: BLE001  (the next round tries again)
                logger.error("the mirror stays behind for now: %s", reason_for_log(error))  # noqa: TRY400  (a traceback quotes)
                self._rests_until = time.monotonic() + REST_SECONDS
                self._is_open = False
            try:
                await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def _round(self) -> None:
        if not self._is_open:
            await self._open()
        port = self.remote.port()
        if await self._source.fingerprint() != await port.fingerprint():
            self._positions = {}
            raise StoreUnavailableError(
                "the file's vectors were made by another embedder meanwhile; mirror it to another collection"
            )
        behind = await self.behind()
        if not behind:
            return
        if not self._take_turn():  # another process updates it; read its position
            self._positions = await port.positions()
            return
        for scope in behind:
            await self._follow(scope)

    async def _open(self) -> None:
        self._positions = {}
        await self.remote.close()
        await self.remote.open()
        port = self.remote.port()
        theirs, ours = await port.tombstones(), await self._source.tombstones()
        if theirs.secret != ours.secret:
            if theirs.digests or await port.owners():
                await self.remote.close()
                raise StoreUnavailableError("the collection belongs to another store; give the mirror a new one")
            await port.adopt(ours)
        self._positions = await port.positions()
        self._is_open = True

    def _take_turn(self) -> bool:
        """Whether this process updates the mirror; the system releases the lock when the process ends."""
        if self._has_turn:
            return True
        descriptor = os.open(self._lock_file, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._has_turn = True
        self._to_close.callback(os.close, descriptor)
        return True

    async def _follow(self, scope: Scope) -> None:
        """Bring one owner up to date, then record the position."""
        port = self.remote.port()
        position, seqs = await self._source.changed(scope, self._positions.get(scope))
        if seqs is None:
            seqs = await self._everything(scope)
        for start in range(0, len(seqs), BATCH):
            some = seqs[start : start + BATCH]
            await port.follow(scope, await self._source.take_at(scope, some), some)
        await port.note_position(scope, position)
        if position is None:
            self._positions.pop(scope, None)
        else:
            self._positions[scope] = position

    async def _everything(self, scope: Scope) -> list[int]:
        """Every seq on either side: records not known to be equal are copied again."""
        here, there = await self._source.manifest(scope), await self.remote.port().manifest(scope)
        return sorted({entry.seq for entry in (*here, *there)})
