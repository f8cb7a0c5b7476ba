"""A pytest plugin for LangGraph's own store tests: what they make is a `MemoryStore` in place of theirs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import langgraph.store.memory as theirs

from memory_core import Memory
from memory_langchain import AsyncMemoryStore, MemoryStore
from memory_langchain.indexing import embedder_of, index_of


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

if find_spec("langgraph.store.sqlite"):  # on the path of its own tests
    for name, ours in (("SqliteStore", MemoryStore), ("AsyncSqliteStore", AsyncMemoryStore)):
        for module in ("langgraph.store.sqlite", "langgraph.store.sqlite.aio"):
            setattr(import_module(module), name, ours)
