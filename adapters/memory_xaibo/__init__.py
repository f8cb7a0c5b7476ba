"""memory-core as modules of Xaibo agents, and Xaibo's chunkers, embedders and indexes on memory-core.

| to get | use |
|---|---|
| a memory for an agent, shared with other frameworks | `CoreMemory` |
| a conversation that is remembered, and what is known before the model | `MemoryLLM` |
| the history of a conversation that survives a restart | `MemoryConversation` |
| a memory made of a chunker, an embedder and an index | `VectorMemory` |
| the parts of such a memory | `TokenChunker`, `TextEmbedder`, `SentenceTransformerEmbedder`, `VectorIndex` |
| a Xaibo embedder for a `Memory` | `XaiboEmbedder` |
| a Xaibo model that manages a memory | `XaiboModel` |

The protocols and the two result classes are Xaibo's own. Every name is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memory_xaibo.chat_model import XaiboModel
    from memory_xaibo.chunker import TokenChunker
    from memory_xaibo.embedding import (
        SentenceTransformerEmbedder,
        TextEmbedder,
        UnsupportedModalityError,
        XaiboEmbedder,
    )
    from memory_xaibo.history import MemoryConversation
    from memory_xaibo.llm import MemoryLLM
    from memory_xaibo.memory import CoreMemory, MemoryList
    from memory_xaibo.protocols import (
        ChunkingProtocol,
        EmbeddingProtocol,
        MemoryProtocol,
        MemorySearchResult,
        VectorIndexProtocol,
        VectorSearchResult,
    )
    from memory_xaibo.vector_index import VectorIndex
    from memory_xaibo.vector_memory import VectorMemory

__all__ = [
    "ChunkingProtocol",
    "CoreMemory",
    "EmbeddingProtocol",
    "MemoryConversation",
    "MemoryLLM",
    "MemoryList",
    "MemoryProtocol",
    "MemorySearchResult",
    "SentenceTransformerEmbedder",
    "TextEmbedder",
    "TokenChunker",
    "UnsupportedModalityError",
    "VectorIndex",
    "VectorIndexProtocol",
    "VectorMemory",
    "VectorSearchResult",
    "XaiboEmbedder",
    "XaiboModel",
]

_HOME: Final = {
    "ChunkingProtocol": "protocols",
    "CoreMemory": "memory",
    "EmbeddingProtocol": "protocols",
    "MemoryConversation": "history",
    "MemoryLLM": "llm",
    "MemoryList": "memory",
    "MemoryProtocol": "protocols",
    "MemorySearchResult": "protocols",
    "SentenceTransformerEmbedder": "embedding",
    "TextEmbedder": "embedding",
    "TokenChunker": "chunker",
    "UnsupportedModalityError": "embedding",
    "VectorIndex": "vector_index",
    "VectorIndexProtocol": "protocols",
    "VectorMemory": "vector_memory",
    "VectorSearchResult": "protocols",
    "XaiboEmbedder": "embedding",
    "XaiboModel": "chat_model",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
