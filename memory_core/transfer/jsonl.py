"""Lossless export and import as JSON Lines: a text file that survives this library.

The first line names the format, then every record of an owner has a line, in the order of arrival, then come the
forgotten source keys (as keyed hashes), and the last line counts the records and has a checksum of all lines before it.
Memory use does not depend on the number of records in a SQLite file, only on that of derived ones; for other stores it
grows by some hundred bytes for each record of an owner.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, Protocol, cast, runtime_checkable

from memory_core.concurrency.loop import on_core
from memory_core.errors import InvalidInputError
from memory_core.memory import Memory
from memory_core.models import DERIVING, Fingerprint, Page, Scope
from memory_core.protocols import Store
from memory_core.requests import ListRequest
from memory_core.storage.shared.transfer import Carried, Copyable, Tombstones, tombstone
from memory_core.transfer.copying import is_of_another_store, port_of, store_of
from memory_core.transfer.lines import from_json, to_json
from memory_core.values.checks import shown
from memory_core.values.json_text import encode_json
from memory_core.values.limits import PAGE_BYTES
from memory_core.values.progress import Progress, ProgressCallback
from memory_core.where.where import ANY_STATE

FORMAT: Final = "memory-core"
VERSION: Final = 1
RECORDS_AT_ONCE: Final = 512
"""Records read, encoded and written at a time."""
PART_BYTES: Final = 65_536
"""The length of the lines that are encoded and written together, but for the last one."""
HASHES: Final = 1_000
"""Forgotten source keys in a line."""
MAX_LINE_BYTES: Final = 1 << 28
"""Longer than the line of any record."""

Json = dict[str, Any]  # one line


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    owners: int
    records: int
    checksum: str
    """Of all lines but the last one, which contains it."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    records: int
    """Records in the export."""
    written: int
    """Records that the target did not have, or in an earlier version."""
    kept: int
    """Records that the target had in the same or a later version, or another one under their source key; they were not
    changed."""
    sourceless: int
    """Records made of the words of others, of which one is neither in the export nor in the target, because it has
    expired, say. They are kept as they are."""


@runtime_checkable
class _Numbered(Protocol):
    """A port that reads records by their place in the order of arrival, which takes no list of all ids."""

    async def next_seq(self, scope: Scope) -> int: ...

    async def take_at(self, scope: Scope, seqs: Sequence[int], most_bytes: int) -> list[Carried]: ...


async def export_jsonl(
    memory: Memory,
    write: Callable[[bytes], object],
    *,
    owner: Scope | None = None,
    vectors: bool = True,
    progress: ProgressCallback | None = None,
) -> Exported:
    """Write all records of a memory as lines of JSON, in every state, with their earlier texts and their vectors.

    Args:
        write: Receives complete lines, in order, in a thread.
        owner: Export only this owner, without the forgotten source keys; by default all owners with them.
        vectors: Include vectors; without them an import computes them again.
        progress: Called for each owner and after each batch.

    Raises:
        InvalidInputError: The store does not support it.
        StorageError: The store failed.
    """

    async def work() -> Exported:
        lines = _Lines(port_of(await store_of(memory)), vectors=vectors)
        async for part in lines.parts(owner, progress):
            await asyncio.to_thread(_write_each, write, part)
        return Exported(lines.owners, lines.count, lines.checksum)

    return await on_core(work)


async def exported(memory: Memory, *, owner: Scope | None = None, vectors: bool = True) -> AsyncGenerator[bytes]:
    """The lines that `export_jsonl` writes, in parts, each of complete lines; raises the same errors.

    A part is read when it is asked for. In between nothing runs and nothing waits, however long that takes, and if
    nobody asks for the next one, nothing is left behind.
    """
    lines = _Lines(port_of(await on_core(store_of, memory)), vectors=vectors)
    parts = lines.parts(owner, None)

    async def following() -> list[bytes] | None:
        return await anext(parts, None)

    while (part := await on_core(following)) is not None:
        yield b"".join(part)


def _write_each(write: Callable[[bytes], object], lines: Iterable[bytes]) -> None:
    for line in lines:
        write(line)


async def export_records(
    memory: Memory,
    write: Callable[[list[Carried]], object],
    *,
    owner: Scope | None = None,
    progress: ProgressCallback | None = None,
) -> None:
    """Pass all records on, or those of one owner, as `export_jsonl` would write them; raises the same errors."""

    async def work() -> None:
        port = port_of(await store_of(memory))
        owners = [owner] if owner is not None else await port.owners()
        for number, scope in enumerate(owners, 1):
            async for done, total, items in _batches(port, scope):
                await asyncio.to_thread(write, items)
                if progress is not None:
                    progress(Progress(done, total, f"owner {number} of {len(owners)}"))

    await on_core(work)


async def _batches(port: Copyable, scope: Scope) -> AsyncIterator[tuple[int, int, list[Carried]]]:
    """The records of an owner in the order of arrival, with how far that is of what total."""
    if isinstance(port, _Numbered):
        start, last = 0, await port.next_seq(scope)
        while start < last:
            stop = min(start + RECORDS_AT_ONCE, last)
            items = await port.take_at(scope, range(start, stop), PAGE_BYTES)
            start = items[-1].seq + 1 if sum(item.size for item in items) >= PAGE_BYTES else stop
            yield start, last, items
        return
    ids = [entry.id for entry in await port.manifest(scope)]
    for start in range(0, len(ids), RECORDS_AT_ONCE):
        yield (
            min(start + RECORDS_AT_ONCE, len(ids)),
            len(ids),
            await port.take(scope, ids[start : start + RECORDS_AT_ONCE]),
        )


class _Lines:
    """The lines of an export on their way out, counted and digested."""

    def __init__(self, port: Copyable, *, vectors: bool) -> None:
        self._port = port
        self._vectors = vectors
        self._digest = blake2b(digest_size=16)
        self.owners = 0
        self.count = 0
        self.checksum = ""
        """Of all lines but the last one, when that has been made."""

    async def parts(self, owner: Scope | None, progress: ProgressCallback | None) -> AsyncGenerator[list[bytes]]:
        """All lines, some at a time; encoding them is work for a thread."""
        owners = [owner] if owner is not None else await self._port.owners()
        self.owners = len(owners)
        yield [self._line(await self._head())]
        for number, scope in enumerate(owners, 1):
            async for done, total, items in _batches(self._port, scope):
                left = iter(items)
                while part := await asyncio.to_thread(self._some, left):
                    yield part
                if progress is not None:
                    progress(Progress(done, total, f"owner {number} of {len(owners)}"))
        if owner is None:
            hashes = sorted(digest.hex() for digest in (await self._port.tombstones()).digests)
            for start in range(0, len(hashes), HASHES):
                yield [self._line({"forgotten": hashes[start : start + HASHES]})]
        self.checksum = self._digest.hexdigest()
        yield [self._line({"end": {"records": self.count, "checksum": self.checksum}})]

    async def _head(self) -> Json:
        known = await self._port.tombstones()
        made_with = await self._port.fingerprint() if self._vectors else None
        head = {"format": FORMAT, "version": VERSION, "store": known.secret.hex()}
        return {**head, "fingerprint": None if made_with is None else asdict(made_with)}

    def _some(self, items: Iterator[Carried]) -> list[bytes]:
        """The lines of the next records; empty after the last one."""
        part, size = list[bytes](), 0
        for item in items:
            self.count += 1
            part.append(self._line(to_json(item, vectors=self._vectors)))
            size += len(part[-1])
            if size >= PART_BYTES:
                break
        return part

    def _line(self, value: Json) -> bytes:
        line = f"{encode_json(value)}\n".encode()
        self._digest.update(line)
        return line


async def import_jsonl(
    memory: Memory,
    lines: Iterable[bytes],
    *,
    owner: Scope | None = None,
    dry_run: bool = False,
    progress: ProgressCallback | None = None,
) -> Imported:
    """Write the records of an export unchanged, with their ids, times, counts and earlier texts.

    The target has to be empty, or to have begun as a copy of the same store; then a record that it has in a later
    version is kept. An export of one owner, who is named, also comes into a memory with other people; what was
    forgotten where it was made is not known there. If a call is interrupted in any way, the next one completes it.

    Args:
        lines: The lines of the export, such as a file that is open for reading bytes.
        owner: The owner whose memories may come into a memory that has those of another store.
        dry_run: Check everything and write nothing.
        progress: Called after each batch with the number of records; the total is 0 until the end, when it is known.

    Raises:
        InvalidInputError: A line is not as it was exported, or the target has other memories. Records of earlier lines
            are stored already.
        StorageError: The store failed.
    """

    async def work() -> Imported:
        reader = _Reader(lines)
        head = await asyncio.to_thread(reader.head)
        port = port_of(store := await store_of(memory))
        is_foreign = await is_of_another_store(port, head.secret)
        if is_foreign and owner is None:
            raise _would_be_mixed_up()
        if not is_foreign and not dry_run:
            await port.adopt(Tombstones(head.secret, frozenset()))
        is_fresh = not is_foreign and not await port.owners()
        import_ = _Import(store, port, fresh=is_fresh, dry_run=dry_run, only=owner if is_foreign else None)
        has_vectors = head.fingerprint is not None and head.fingerprint == await port.fingerprint()
        dimensions = head.fingerprint.dimensions if has_vectors and head.fingerprint is not None else None
        while batch := await asyncio.to_thread(reader.batch, dimensions):
            await import_.store(batch)
            if progress is not None:
                progress(Progress(reader.records, 0))
        if progress is not None:
            progress(Progress(reader.records, reader.records))
        if not dry_run and not is_foreign:
            await port.adopt(Tombstones(head.secret, frozenset(reader.forgotten)))
        return Imported(reader.records, import_.written, import_.kept, await import_.sourceless())

    return await on_core(work)


def _would_be_mixed_up() -> InvalidInputError:
    return InvalidInputError(
        "the target has memories of another store, which an import would mix up; import into a new file or "
        "collection, or name the one owner of the export with --app and --user"
    )


@dataclass(frozen=True, slots=True)
class _Head:
    secret: bytes
    fingerprint: Fingerprint | None


class _Reader:
    """Lines on their way in: numbered, digested and checked."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = _numbered(lines)
        self._digest = blake2b(digest_size=16)
        self._end: Json | None = None
        self._waiting: list[tuple[Scope, Carried]] = []
        self.records = 0
        self.forgotten: list[bytes] = []

    def head(self) -> _Head:
        number, line = next(self._lines, (1, b""))
        found = _parsed(number, line)
        if found.get("format") != FORMAT or not isinstance(found.get("version"), int):
            raise InvalidInputError(
                f"line {number} is not the first line of an export of memory-core; `memory-core import` takes those of "
                "others, which `memory-core formats` lists"
            )
        if found["version"] > VERSION:
            raise InvalidInputError(
                f"the export has format {found['version']}, this version of memory-core knows {VERSION}; upgrade it"
            )
        self._digest.update(line)
        made_with = found.get("fingerprint")
        try:
            return _Head(bytes.fromhex(found["store"]), None if made_with is None else Fingerprint(**made_with))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"line {number} is not the first line of an export: {error}") from error

    def batch(self, dimensions: int | None) -> list[tuple[Scope, Carried]]:
        """The next records, all of one owner; none at the end."""
        found, self._waiting = self._waiting, []
        for number, line in self._lines:
            item = self._record(number, line, dimensions)
            if item is None:
                continue
            if found and item[0] != found[0][0]:
                self._waiting = [item]
                return found
            found.append(item)
            if len(found) == RECORDS_AT_ONCE:
                return found
        if not found and self._end is None:
            raise InvalidInputError(
                f"the export is incomplete: it ends after {self.records} records without its last line; export again"
            )
        return found

    def _record(self, number: int, line: bytes, dimensions: int | None) -> tuple[Scope, Carried] | None:
        value = _parsed(number, line)
        if self._end is not None:
            raise InvalidInputError(f"line {number} follows the last line of the export; remove it")
        if "end" in value:
            self._finish(number, value["end"])
            return None
        self._digest.update(line)
        try:
            if "forgotten" in value:
                self.forgotten += [bytes.fromhex(digest) for digest in value["forgotten"]]
                return None
            item = from_json(value, self.records, dimensions)
        except (InvalidInputError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"line {number} is not a record of an export: {error}") from error
        self.records += 1
        return Scope(item.record.app, item.record.user), item

    def _finish(self, number: int, end: object) -> None:
        wanted = {"records": self.records, "checksum": self._digest.hexdigest()}
        if end != wanted:
            raise InvalidInputError(f"line {number} does not fit the lines before it: the export was changed or cut")
        self._end = wanted


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    read = getattr(lines, "readline", None)
    found = iter(lambda: cast("bytes", read(MAX_LINE_BYTES)), b"") if read is not None else iter(lines)
    for number, line in enumerate(found, 1):
        if not isinstance(line, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  # a file opened for text
            raise InvalidInputError(f"lines must be bytes, not {shown(line)}; open the file with mode 'rb'")
        if len(line) >= MAX_LINE_BYTES:
            raise InvalidInputError(f"line {number} is longer than any line of an export")
        yield number, line


def _parsed(number: int, line: bytes) -> Json:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"line {number} is not JSON, so the file is no export, or was cut") from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"line {number} is not a JSON object, so the file is no export, or was cut")
    return cast("Json", value)


@dataclass(slots=True)
class _Import:
    target: Store
    port: Copyable
    fresh: bool
    """The target was empty, so nothing has to be compared."""
    dry_run: bool
    only: Scope | None
    """The only owner whose records may come in; `None` for all."""
    written: int = 0
    kept: int = 0
    seen: dict[Scope, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The ids of the export, by owner, if nothing is written."""
    sources: dict[Scope, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(dict))
    """By owner, the records that name sources, by id, with the ids of these."""

    async def store(self, batch: Sequence[tuple[Scope, Carried]]) -> None:
        scope, items = batch[0][0], [item for _, item in batch]
        if self.only is not None and scope != self.only:
            raise InvalidInputError(
                f"the export has memories of {scope.app}/{scope.user}, and only {self.only.app}/{self.only.user} is "
                "named; export one owner with --only-owner, and name the owner"
            )
        wanted = items if self.fresh else await self._missing(scope, items)
        if self.dry_run:
            self.seen[scope].update(item.record.id for item in items)
        made = {item.record.id: {link.id for link in item.record.links if link.relation in DERIVING} for item in items}
        self.sources[scope] |= {id_: named for id_, named in made.items() if named}
        self.written += len(wanted)
        self.kept += len(items) - len(wanted)
        if wanted and not self.dry_run:
            await self.port.restore(scope, wanted)

    async def sourceless(self) -> int:
        """See `Imported.sourceless`."""
        found = 0
        for scope, sources in self.sources.items():
            named = sorted({id_ for ids in sources.values() for id_ in ids})
            known = self.seen[scope]
            for start in range(0, len(named), RECORDS_AT_ONCE):
                where = replace(ANY_STATE, ids=tuple(named[start : start + RECORDS_AT_ONCE]))
                request = ListRequest(where=where, order="newest", limit=RECORDS_AT_ONCE, cursor=None, touch=False)
                known |= {record.id for record in (await self.target.list(scope, request)).records}
            found += sum(not ids <= known for ids in sources.values())
        return found

    async def _missing(self, scope: Scope, items: Sequence[Carried]) -> list[Carried]:
        known = {item.record.id: item for item in await self.port.take(scope, [item.record.id for item in items])}
        holders = await self._holders(scope, items)
        forgotten = await self.port.tombstones() if self.only is not None else None
        return [
            item
            for item in items
            if _is_wanted(item, known.get(item.record.id))
            and holders.get(item.record.source_key, item.record.id) == item.record.id
            and not _is_forgotten(item, scope, forgotten)
        ]

    async def _holders(self, scope: Scope, items: Sequence[Carried]) -> dict[str | None, str]:
        """The ids of the target's records by source key: one that was put again since has another id, and is newer."""
        keys = tuple(item.record.source_key for item in items if item.record.source_key is not None)
        where = replace(ANY_STATE, source_keys=keys)
        request = ListRequest(where=where, order="newest", limit=RECORDS_AT_ONCE, cursor=None, touch=False)
        page = await self.target.list(scope, request) if keys else Page((), None)
        return {record.source_key: record.id for record in page.records}


def _is_forgotten(item: Carried, scope: Scope, known: Tombstones | None) -> bool:
    """True if the target has forgotten a record on purpose; within one store, `restore` knows it."""
    key = item.record.source_key
    return known is not None and key is not None and tombstone(known.secret, scope, key) in known.digests


def _is_wanted(item: Carried, known: Carried | None) -> bool:
    if known is None:
        return True
    if known.record.version != item.record.version:
        return known.record.version < item.record.version
    return bool(item.vectors) and not known.vectors and known.digest() == item.digest()
