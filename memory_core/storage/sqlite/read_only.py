"""A file opened read-only: the file and its neighbours do not change, and no background task runs."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from memory_core.concurrency.threads import in_thread
from memory_core.errors import ReadOnlyError, StoreUnavailableError
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.sqlite.adding import AddQueue, Batch
from memory_core.storage.sqlite.connection import IN_MEMORY, Connection
from memory_core.storage.sqlite.file_identity import Identity, insist_on_same_file
from memory_core.storage.sqlite.files import find
from memory_core.storage.sqlite.group_commit import Work, Writer
from memory_core.storage.sqlite.owners import pending_in_all
from memory_core.storage.sqlite.read_connection import connect_for_reading
from memory_core.storage.sqlite.readers import Readers
from memory_core.storage.sqlite.shared_file import SharedFile, Wanted
from memory_core.supplied import Embedder
from memory_core.values.progress import ProgressCallback

T = TypeVar("T")


class ReadOnlyFile(SharedFile):
    """A `SharedFile` of one store that refuses every write at once."""

    def __init__(self, path: str, opened: Identity, wanted: Wanted) -> None:
        super().__init__(path, None, wanted)
        self._opened = opened

    async def _open(self) -> None:
        self.write_connection = connection = await self._connect()
        self.reader = Readers(connection, self._connect_another, self._disconnect)
        self._to_close.push_async_callback(self.reader.close)
        self.writer = _Refusing(connection, _nothing, _nothing, _nothing, nullcontext)
        self.add_queue = AddQueue(self.writer, self.prepare, self.embedded, self.claim)
        self._to_close.push_async_callback(self.add_queue.close)
        await self.searching_embedder()

    def _serve_vectors(self, embedder: Embedder) -> None:  # noqa: ARG002
        self.is_claimed = True

    async def _connect_another(self, prepare: Callable[[Path], object] | None = None) -> Connection:  # noqa: ARG002
        connection = await connect_for_reading(Path(self.path))
        self.connections.append(connection)
        return connection

    async def embedded(self, batches: Sequence[Batch]) -> list[list[Prepared]]:  # noqa: ARG002
        """Refuse: texts are embedded here only to be written."""
        refuse()

    async def probe(self) -> int:
        """Read the file, if it is still the one at its path."""
        insist_on_same_file(self.path, self._opened)
        return await self.reader.run(pending_in_all)

    async def alone(self, work: Callable[[sqlite3.Connection], T]) -> T:  # noqa: ARG002
        """Refuse: work with the write lock is a write."""
        refuse()

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None) -> int:  # noqa: ARG002
        """Refuse."""
        refuse()


class _Refusing(Writer):
    def enqueue(self, work: Work, done: Sequence[asyncio.Future[Any]]) -> None:  # noqa: ARG002
        refuse()


def refuse() -> NoReturn:
    """Raise what every write to such a file raises."""
    raise ReadOnlyError("this memory was opened with read_only=True; open it without that to change anything")


def _nothing(*_: object) -> None:
    pass


async def borrow_for_reading(path: str | os.PathLike[str], wanted: Wanted) -> SharedFile:
    """The file at a path, opened for this store alone; see `borrow`.

    Raises:
        StorageError: The file does not exist, or cannot be used as it is.
        FingerprintError: Its vectors were made by another embedder.
    """
    if os.fspath(path) == IN_MEMORY:
        raise StoreUnavailableError("':memory:' is empty when it is opened, so there is nothing to read")
    name, opened = await in_thread(partial(find, Path(path)))
    file = ReadOnlyFile(str(name), opened, wanted)
    await file.open()
    file.users += 1
    return file
