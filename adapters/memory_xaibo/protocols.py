"""Xaibo's memory protocols and their result classes, imported here once for the whole package."""

from __future__ import annotations

try:
    from xaibo.core.protocols.memory import (
        ChunkingProtocol,
        EmbeddingProtocol,
        MemoryProtocol,
        MemorySearchResult,
        VectorIndexProtocol,
        VectorSearchResult,
    )
except ImportError as error:
    raise ImportError("`memory_xaibo` needs Xaibo: pip install 'memory-core[xaibo]'") from error

__all__ = [
    "ChunkingProtocol",
    "EmbeddingProtocol",
    "MemoryProtocol",
    "MemorySearchResult",
    "VectorIndexProtocol",
    "VectorSearchResult",
]
