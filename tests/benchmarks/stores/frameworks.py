"""The memories of agent frameworks, as their own documentation shows them."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from common import DIMENSIONS, GivenVectors
from stores.face import Entry, OneByOne


class AdkInMemory(OneByOne):
    durability = "nothing"
    searches_by = "words"
    needs = "google.adk"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        from google.adk.memory import InMemoryMemoryService

        self._service: Any = InMemoryMemoryService()

    async def add(self, owner: str, number: int, text: str) -> None:
        from google.adk.events.event import Event
        from google.adk.sessions.session import Session
        from google.genai import types

        event = Event(author="user", content=types.Content(role="user", parts=[types.Part(text=text)]))
        session = Session(id=f"s{number}", app_name="bench", user_id=owner, events=[event])
        await self._service.add_session_to_memory(session)

    async def search(self, owner: str, query: str) -> object:
        return await self._service.search_memory(app_name="bench", user_id=owner, query=query)

    async def close(self) -> None:
        pass


class AdkSqlite(AdkInMemory):
    durability = "synced"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        from google.adk.memory import SqliteMemoryService

        self._service = SqliteMemoryService(folder / "adk.db")


def index_of(vectors: GivenVectors) -> Any:
    """The index configuration by which LangGraph's stores come to their vectors."""
    from langchain_core.embeddings import Embeddings

    class Given(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [vectors.vector(text).tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [float(number) for number in vectors.vector(text)]

    return {"dims": DIMENSIONS, "embed": Given(), "fields": ["text"]}


class LangGraphInMemory(OneByOne):
    durability = "nothing"
    searches_by = "meaning"
    needs = "langgraph.store.memory"

    def __init__(self) -> None:
        self._to_close = AsyncExitStack()

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        from langgraph.store.memory import InMemoryStore

        self._store: Any = InMemoryStore(index=index_of(vectors))

    async def add(self, owner: str, number: int, text: str) -> None:
        await self._store.aput((owner,), str(number), {"text": text})

    async def search(self, owner: str, query: str) -> object:
        return await self._store.asearch((owner,), query=query)

    async def close(self) -> None:
        await self._to_close.aclose()


class LangGraphSqlite(LangGraphInMemory):
    """Without vectors where Python cannot load the extension that its semantic search needs, as most cannot."""

    durability = "synced"
    searches_by = "meaning" if hasattr(sqlite3.Connection, "enable_load_extension") else "nothing"
    needs = "langgraph.store.sqlite"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        module: Any = importlib.import_module("langgraph.store.sqlite")
        index = None if self.searches_by == "nothing" else index_of(vectors)
        opened = module.AsyncSqliteStore.from_conn_string(str(folder / "langgraph.db"), index=index)
        self._store = await self._to_close.enter_async_context(opened)
        await self._store.setup()


class SpadeLlm(OneByOne):
    durability = "synced"
    searches_by = "one word, LIKE"
    needs = "spade_llm"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        from spade_llm.memory.backends.sqlite import SQLiteMemoryBackend

        self._backend: Any = SQLiteMemoryBackend(str(folder / "spade.db"))
        await self._backend.initialize()

    async def add(self, owner: str, number: int, text: str) -> None:
        from spade_llm.memory.backends.base import MemoryEntry

        entry = MemoryEntry(id=f"{owner}-{number}", agent_id=owner, category="fact", content=text)
        await self._backend.store_memory(entry)

    async def fill(self, entries: Sequence[Entry]) -> None:
        for entry in entries:  # many at once end in "database is locked"
            await self.add(*entry)

    async def search(self, owner: str, query: str) -> object:
        return await self._backend.search_memories(owner, query.rsplit(maxsplit=1)[-1])

    async def close(self) -> None:
        await self._backend.cleanup()
