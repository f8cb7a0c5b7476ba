"""Cases of files: how they are named, shared between services and processes, reopened, and only read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from memory_adk import MemoryService, memory_service
from memory_core import Memory, MemoryCoreError
from tests.adapters.adk.agents import said_event
from tests.adapters.adk.behaviour import ANN, CASES, FERRY, World, case

_OTHERS: Final = frozenset(CASES)


@contextlib.asynccontextmanager
async def opened(service: MemoryService) -> AsyncIterator[World]:
    """A service that owns its file."""
    try:
        yield World(service, "files")
    finally:
        await service.close()


def names_in(folder: str) -> set[str]:
    return {entry.name for entry in Path(folder).iterdir() if "-" not in entry.name}


def _named(name: str, make: Callable[[Path], MemoryService], *, creates: str | None) -> None:
    """A case of how a file is named: what is stored in it is found, and it is where it should be."""

    async def check(world: World) -> None:
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            async with opened(make(Path(folder))) as in_file:
                await in_file.events(said_event(FERRY))
                assert await in_file.texts("ferry") == [FERRY]
            assert names_in(folder) == (set() if creates is None else {creates})

    CASES[name] = check


_named("a URI with an absolute path", lambda at: memory_service(f"memorycore://{at}/a.db"), creates="a.db")
_named("a URI with four slashes", lambda at: memory_service(f"memorycore:///{at}/a.db"), creates="a.db")
_named("an absolute path as text", lambda at: MemoryService(os.fspath(at / "a.db")), creates="a.db")
_named("an absolute path as an object", lambda at: MemoryService(at / "a.db"), creates="a.db")
_named("a URI with a relative path", lambda _: memory_service("memorycore:a.db"), creates="a.db")
_named("a relative path", lambda _: MemoryService("a.db"), creates="a.db")
_named("a URI without a file", lambda _: memory_service("memorycore::memory:"), creates=None)
_named("a path without a file", lambda _: MemoryService(":memory:"), creates=None)


def _read_only(name: str, make: Callable[[Path], MemoryService]) -> None:
    """A case of a file that is only read: what it holds is found, and a write is an error."""

    async def check(world: World) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "a.db"
            async with opened(MemoryService(path)) as writer:
                await writer.events(said_event(FERRY))
            async with opened(make(path)) as reader:
                assert await reader.texts("ferry") == [FERRY]
                with pytest.raises(MemoryCoreError):
                    await reader.events(said_event("The ferry is late.", id="2"))
                assert await reader.texts("ferry") == [FERRY]

    CASES[name] = check


_read_only("a URI with mode=ro", lambda path: memory_service(f"memorycore://{path}?mode=ro"))
_read_only("a URI with mode=ro and an app", lambda path: memory_service(f"memorycore://{path}?mode=ro&app_name=files"))
_read_only("a file that is only read", lambda path: MemoryService(Memory(path, read_only=True), owns_memory=True))


@case
async def a_uri_alone_creates_nothing(world: World) -> None:
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        MemoryService(Path(folder) / "nested" / "a.db")
        assert names_in(folder) == set()


@case
async def what_was_stored_is_found_once_after_a_restart(world: World) -> None:
    with TemporaryDirectory() as folder:
        for _ in range(2):
            async with opened(MemoryService(Path(folder) / "a.db")) as in_file:
                await in_file.tell(FERRY, session="s7")
                (entry,) = await in_file.found("ferry")
                assert entry.custom_metadata["session_id"] == "s7"


@case
async def a_memory_by_words_can_later_be_searched_by_meaning(world: World) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        async with opened(MemoryService(Memory(path, embedder=None), owns_memory=True)) as by_words:
            await by_words.tell(FERRY)
        async with opened(MemoryService(path)) as by_meaning:
            assert await by_meaning.texts("ferry") == [FERRY]


@case
async def two_services_on_one_file_store_one_event_once(world: World) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        async with opened(MemoryService(path)) as one, opened(MemoryService(path)) as two:
            await asyncio.gather(one.tell(FERRY), two.tell(FERRY))
            assert [record.text for record in await one.stored()] == [FERRY]


@case
async def a_file_of_a_newer_version_is_refused(world: World) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        async with opened(MemoryService(path)) as in_file:
            await in_file.tell(FERRY)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 999")
        async with opened(MemoryService(path)) as in_file:
            with pytest.raises(MemoryCoreError, match="NewerStoreError"):
                await in_file.texts("ferry")


@case
async def a_file_is_shared_with_adks_sessions(world: World) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        await SqliteSessionService(db_path=str(path)).create_session(app_name="files", user_id=ANN, session_id="s")
        async with opened(MemoryService(path)) as in_file:
            await in_file.tell(FERRY)
            assert await in_file.texts("ferry") == [FERRY]


FILES: Final = frozenset(CASES) - _OTHERS
"""The cases of this module, which have services of their own."""
