"""A pytest plugin for LangGraph's own store tests: what they make is a `MemoryStore` in place of theirs."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from typing import Any

import langgraph.store.memory as theirs

from memory_core import Memory
from memory_langchain import AsyncMemoryStore, MemoryStore
from memory_langchain.indexing import embedder_of, index_of

_files = itertools.count()


class InMemoryStore(MemoryStore):
    """Made like theirs: without a file, and without vectors if there is no index."""

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        config = None if index is None else index_of(index)
        embedder = None if config is None else embedder_of(config)
        handle = Memory(":memory:", embedder=embedder).bind(user="everyone")
        mode = "lexical" if config is None else "vector"
        super().__init__(handle, fields=(config or {}).get("fields") or ["$"], ttl=ttl, mode=mode)
        self.index_config = config


theirs.InMemoryStore = InMemoryStore  # type: ignore[misc, assignment]

if find_spec("langgraph.store.sqlite"):
    import langgraph.store.sqlite as sqlite
    import langgraph.store.sqlite.aio as aio

    sqlite.SqliteStore = MemoryStore  # type: ignore[misc, assignment]
    aio.AsyncSqliteStore = AsyncMemoryStore  # type: ignore[misc, assignment]
    sqlite.AsyncSqliteStore = AsyncMemoryStore
