"""Vector databases in the process, and mem0, as their own documentation shows them; vectors are given to all."""

from __future__ import annotations

import importlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common import DIMENSIONS, GivenVectors
from stores.face import Entry, OneByOne


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


class LanceDb(OneByOne):
    """Without an index, which its documentation advises from some 100,000 rows on."""

    durability = "synced"
    searches_by = "meaning"
    needs = "lancedb"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        lancedb: Any = importlib.import_module("lancedb")
        arrow: Any = importlib.import_module("pyarrow")
        self._vectors = vectors
        columns = [("id", arrow.int64()), ("owner", arrow.string()), ("text", arrow.string())]
        schema = arrow.schema([*columns, ("vector", arrow.list_(arrow.float32(), DIMENSIONS))])
        db = await lancedb.connect_async(str(folder / "lance"))
        self._table: Any = await db.create_table("bench", schema=schema, exist_ok=True)

    async def add(self, owner: str, number: int, text: str) -> None:
        await self._table.add([self._row(owner, number, text)])

    async def fill(self, entries: Sequence[Entry]) -> None:
        await self._table.add([self._row(*entry) for entry in entries])

    def _row(self, owner: str, number: int, text: str) -> dict[str, object]:
        return {"id": number, "owner": owner, "text": text, "vector": self._vectors.vector(text)}

    async def search(self, owner: str, query: str) -> object:
        near = self._table.vector_search(self._vectors.vector(query)).distance_type("cosine")
        return await near.where(f"owner = '{owner}'").limit(10).to_list()

    async def close(self) -> None:
        self._table.close()


class SqliteVec(OneByOne):
    """A virtual table with the owner as its partition; its calls hold the event loop."""

    durability = "synced"
    searches_by = "meaning"
    needs = "sqlite_vec" if hasattr(sqlite3.Connection, "enable_load_extension") else "a Python that loads extensions"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        sqlite_vec: Any = importlib.import_module("sqlite_vec")
        self._vectors = vectors
        self._db = sqlite3.connect(folder / "vec.db")
        self._db.enable_load_extension(True)  # noqa: FBT003
        sqlite_vec.load(self._db)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS bench USING vec0 (id INTEGER PRIMARY KEY, owner TEXT PARTITION KEY, "
            f"vector FLOAT[{DIMENSIONS}] DISTANCE_METRIC=cosine, +text TEXT)"
        )

    async def add(self, owner: str, number: int, text: str) -> None:
        await self.fill([(owner, number, text)])

    async def fill(self, entries: Sequence[Entry]) -> None:
        rows = [(number, owner, self._vectors.vector(text).tobytes(), text) for owner, number, text in entries]
        with self._db:
            self._db.executemany("INSERT INTO bench (id, owner, vector, text) VALUES (?, ?, ?, ?)", rows)

    async def search(self, owner: str, query: str) -> object:
        near = "SELECT id, text, distance FROM bench WHERE owner = ? AND vector MATCH ? AND k = 10"
        return self._db.execute(near, (owner, self._vectors.vector(query).tobytes())).fetchall()

    async def close(self) -> None:
        self._db.close()


class FaissWithSqlite(OneByOne):
    """Texts and vectors in SQLite, an exact index of one owner in memory, built when it is opened."""

    durability = "synced"
    searches_by = "meaning"
    needs = "faiss"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        faiss: Any = importlib.import_module("faiss")
        self._vectors = vectors
        self._index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(DIMENSIONS))
        self._db = sqlite3.connect(folder / "faiss.db")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS bench (id INTEGER PRIMARY KEY, owner TEXT, text TEXT, vector BLOB)"
        )
        rows = self._db.execute("SELECT id, vector FROM bench").fetchall()
        self._note([key for key, _ in rows], [np.frombuffer(vector, np.float32) for _, vector in rows])

    async def add(self, owner: str, number: int, text: str) -> None:
        await self.fill([(owner, number, text)])

    async def fill(self, entries: Sequence[Entry]) -> None:
        made = [self._vectors.vector(text) for _, _, text in entries]
        rows = [(n, owner, text, vector.tobytes()) for (owner, n, text), vector in zip(entries, made, strict=True)]
        with self._db:
            self._db.executemany("INSERT INTO bench VALUES (?, ?, ?, ?)", rows)
        self._note([number for _, number, _ in entries], made)

    def _note(self, keys: Sequence[int], vectors: Sequence[Any]) -> None:
        if keys:
            self._index.add_with_ids(np.stack(vectors), np.array(keys))

    async def search(self, owner: str, query: str) -> object:
        _, keys = self._index.search(self._vectors.vector(query)[None], 10)
        marks = ", ".join("?" * keys.size)
        found = f"SELECT id, text FROM bench WHERE id IN ({marks})"
        return self._db.execute(found, [int(key) for key in keys[0]]).fetchall()

    async def close(self) -> None:
        self._db.close()
