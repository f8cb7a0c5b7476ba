"""Other memories behind one face, for the benchmarks; one that is not installed is left out.

Each is used as its own documentation shows it and with the durability it ships with. Vectors are given to all that
take vectors; the others search by words.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

from common import DIMENSIONS, GivenVectors
from memory_core import Memory

Entry = tuple[str, int, str]
"""Owner, number, text."""


class Peer(Protocol):
    """A store of texts by owner."""

    durability: str
    """What is on disk when an add returns."""
    searches_by: str

    async def open(self, folder: Path, vectors: GivenVectors) -> None: ...

    async def add(self, owner: str, number: int, text: str) -> None: ...

    async def fill(self, entries: Sequence[Entry]) -> None: ...

    async def search(self, owner: str, query: str) -> object: ...

    async def close(self) -> None: ...


class OneByOne:
    """Filled by adds, 32 at a time."""

    async def add(self, owner: str, number: int, text: str) -> None:
        raise NotImplementedError

    async def fill(self, entries: Sequence[Entry]) -> None:
        for first in range(0, len(entries), 32):
            await asyncio.gather(*(self.add(*entry) for entry in entries[first : first + 32]))


class Ours(OneByOne):
    durability = "synced"
    searches_by = "words, meaning, context"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        self._memory = await Memory(folder / "ours.db", embedder=vectors).open()

    async def add(self, owner: str, number: int, text: str) -> None:
        await self._memory.bind(app="bench", user=owner).add(text)

    async def fill(self, entries: Sequence[Entry]) -> None:
        for first in range(0, len(entries), 1_000):
            some = sorted(entries[first : first + 1_000])
            for owner, owned in itertools.groupby(some, key=lambda entry: entry[0]):
                await self._memory.bind(app="bench", user=owner).add_many([text for _, _, text in owned])

    async def search(self, owner: str, query: str) -> object:
        return await self._memory.bind(app="bench", user=owner).search(query)

    async def close(self) -> None:
        await self._memory.close()


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


def _index(vectors: GivenVectors) -> Any:
    """How LangGraph's stores come to their vectors."""
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

        self._store: Any = InMemoryStore(index=_index(vectors))

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
        index = None if self.searches_by == "nothing" else _index(vectors)
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


class QdrantLocal(OneByOne):
    durability = "synced"
    searches_by = "meaning"
    needs = "qdrant_client"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        from qdrant_client import AsyncQdrantClient, models

        self._models, self._vectors = models, vectors
        self._client = AsyncQdrantClient(path=str(folder / "qdrant"))
        parameters = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
        if not await self._client.collection_exists("bench"):
            await self._client.create_collection("bench", vectors_config=parameters)

    async def add(self, owner: str, number: int, text: str) -> None:
        vector = self._vectors.vector(text).tolist()
        point = self._models.PointStruct(id=number, vector=vector, payload={"owner": owner, "text": text})
        await self._client.upsert("bench", [point])

    async def fill(self, entries: Sequence[Entry]) -> None:
        points = [
            self._models.PointStruct(
                id=number, vector=self._vectors.vector(text).tolist(), payload={"owner": owner, "text": text}
            )
            for owner, number, text in entries
        ]
        await self._client.upsert("bench", points)

    async def search(self, owner: str, query: str) -> object:
        condition = self._models.FieldCondition(key="owner", match=self._models.MatchValue(value=owner))
        vector = self._vectors.vector(query).tolist()
        return await self._client.query_points(
            "bench", query=vector, query_filter=self._models.Filter(must=[condition]), limit=10
        )

    async def close(self) -> None:
        await self._client.close()


class Chroma(OneByOne):
    """Its client is synchronous: a call holds the event loop."""

    durability = "synced"
    searches_by = "meaning"
    needs = "chromadb"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        chromadb: Any = importlib.import_module("chromadb")
        self._vectors = vectors
        client = chromadb.PersistentClient(str(folder / "chroma"))
        self._collection: Any = client.get_or_create_collection("bench", metadata={"hnsw:space": "cosine"})

    async def add(self, owner: str, number: int, text: str) -> None:
        self._collection.add(
            ids=[str(number)],
            embeddings=[self._vectors.vector(text)],
            documents=[text],
            metadatas=[{"owner": owner}],
        )

    async def fill(self, entries: Sequence[Entry]) -> None:
        for first in range(0, len(entries), 500):
            owners, numbers, texts = zip(*entries[first : first + 500], strict=True)
            self._collection.add(
                ids=[str(number) for number in numbers],
                embeddings=[self._vectors.vector(text) for text in texts],
                documents=list(texts),
                metadatas=[{"owner": owner} for owner in owners],
            )

    async def search(self, owner: str, query: str) -> object:
        return self._collection.query(
            query_embeddings=[self._vectors.vector(query)], n_results=10, where={"owner": owner}
        )

    async def close(self) -> None:
        pass


class Mem0(OneByOne):
    """Without a model that extracts facts (`infer=False`), over Qdrant's local mode, its default."""

    durability = "synced"
    searches_by = "meaning"
    needs = "mem0"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder), HF_HUB_OFFLINE="1")
        mem0: Any = importlib.import_module("mem0")
        embeddings: Any = importlib.import_module("langchain_core.embeddings")

        class Given(embeddings.Embeddings):  # type: ignore[misc]
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [vectors.vector(text).tolist() for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return [float(number) for number in vectors.vector(text)]

        where = {"path": str(folder / "mem0"), "collection_name": "bench", "embedding_model_dims": DIMENSIONS}
        self._memory: Any = mem0.AsyncMemory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {**where, "on_disk": True}},
                "embedder": {"provider": "langchain", "config": {"model": Given()}},
                "llm": {"provider": "openai", "config": {"api_key": "never used"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    async def add(self, owner: str, number: int, text: str) -> None:
        await self._memory.add(text, user_id=owner, infer=False)

    async def fill(self, entries: Sequence[Entry]) -> None:
        for entry in entries:  # its store is not made for several threads
            await self.add(*entry)

    async def search(self, owner: str, query: str) -> object:
        return await self._memory.search(query, filters={"user_id": owner})

    async def close(self) -> None:
        self._memory.vector_store.client.close()


_ALL: Sequence[type[Any]] = (
    Ours, AdkInMemory, AdkSqlite, LangGraphInMemory, LangGraphSqlite, SpadeLlm, QdrantLocal, Chroma, Mem0,
)  # fmt: skip


def installed() -> dict[str, type[Peer]]:
    """Those that can be used here, by name; ours first."""
    return {kind.__name__: kind for kind in _ALL if _is_there(getattr(kind, "needs", "memory_core"))}


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
