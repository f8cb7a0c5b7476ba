"""A pytest plugin for LangGraph's own store tests: what they make is a `MemoryStore` in place of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import langgraph.store.memory as theirs

from memory_core import BoundMemory, Memory
from memory_langchain import AsyncMemoryStore, MemoryStore
from memory_langchain.indexing import embedder_of, index_of


def _without_vectors() -> BoundMemory:
    return Memory(":memory:", embedder=None).bind(user="everyone")


class InMemoryStore(MemoryStore):
    """Made like theirs: without a file, and without vectors if there is no index."""

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        config = None if index is None else index_of(index)
        embedder = None if config is None else embedder_of(config)
        handle = Memory(":memory:", embedder=embedder).bind(user="everyone")
        fields = (config or {}).get("fields") or ["$"]
        super().__init__(handle, fields=fields, ttl=ttl, mode="lexical" if config is None else "vector")
        self.index_config = config


theirs.InMemoryStore = InMemoryStore  # type: ignore[misc, assignment]


class _NoServer:
    """A connection that makes and empties databases where there are none."""

    @classmethod
    def connect(cls, *_: Any, **__: Any) -> _NoServer:
        return cls()

    def execute(self, *_: Any) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class _NoAsyncServer(_NoServer):
    @classmethod
    def __class_getitem__(cls, _: object) -> type[_NoAsyncServer]:
        return cls

    @classmethod
    async def connect(cls, *_: Any, **__: Any) -> _NoAsyncServer:  # type: ignore[override]
        return cls()

    async def execute(self, *_: Any) -> None: ...  # type: ignore[override]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class _NoTables:
    """The stand-in for what their tests make before a test: a store whose tables can be made twice."""

    MIGRATIONS: Sequence[str] = ()

    @classmethod
    def from_conn_string(cls, _: str, *, index: Any = None, ttl: Any = None) -> Any:
        if index is not None:
            return super().from_conn_string(":memory:", index=index, ttl=ttl)  # type: ignore[misc]
        return cls(_without_vectors(), ttl=ttl, mode="lexical")  # type: ignore[call-arg]

    def _cursor(self) -> _Cursor:
        return _Cursor()


class _Cursor(_NoAsyncServer):
    def execute(self, statement: str, *_: Any) -> Any:
        if not statement.startswith("DROP TABLE"):
            raise NotImplementedError("a test that changes the tables of their store")
        return _done()


async def _done() -> None: ...


class PostgresStore(_NoTables, MemoryStore):  # type: ignore[misc]  # made without a server
    """Made like theirs, without a server."""


class AsyncPostgresStore(_NoTables, AsyncMemoryStore):  # type: ignore[misc]  # as above
    """Made like theirs, without a server."""


def _replace(package: str, **classes: type) -> None:
    if find_spec(package) is None:  # only on the path of its own tests
        return
    for module in (package, *(f"{package}.{name}" for name in ("aio", "base") if find_spec(f"{package}.{name}"))):
        for name, ours in classes.items():
            setattr(import_module(module), name, ours)


_replace("langgraph.store.sqlite", SqliteStore=MemoryStore, AsyncSqliteStore=AsyncMemoryStore)
_replace("langgraph.store.postgres", PostgresStore=PostgresStore, AsyncPostgresStore=AsyncPostgresStore)
_replace("psycopg", Connection=_NoServer, AsyncConnection=_NoAsyncServer)
