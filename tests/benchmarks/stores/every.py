"""All memories that are compared, by the name that the page shows; ours first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stores.databases import Chroma, FaissWithSqlite, LanceDb, Mem0, QdrantLocal, SqliteVec
from stores.face import Ours, Peer
from stores.frameworks import AdkInMemory, AdkSqlite, LangGraphInMemory, LangGraphSqlite, SpadeLlm

STORES: Final[Mapping[str, type[Peer]]] = {
    "memory-core": Ours,
    "ADK in memory": AdkInMemory,
    "ADK SQLite": AdkSqlite,
    "LangGraph in memory": LangGraphInMemory,
    "LangGraph SQLite": LangGraphSqlite,
    "spade_llm": SpadeLlm,
    "Qdrant local mode": QdrantLocal,
    "Chroma": Chroma,
    "mem0, `infer=False`": Mem0,
    "LanceDB": LanceDb,
    "sqlite-vec": SqliteVec,
    "FAISS with SQLite": FaissWithSqlite,
}
LEFT_OUT: Final[Mapping[str, str]] = {"txtai": "it needs torch, which is gigabytes"}
"""The reasons why others are not among them."""
