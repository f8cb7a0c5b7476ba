"""Xaibo's protocols with their result classes and messages, imported here once for the whole package."""

from __future__ import annotations

try:
    from xaibo.core.models.llm import LLMMessage, LLMOptions, LLMResponse, LLMRole
    from xaibo.core.protocols.conversation import ConversationHistoryProtocol
    from xaibo.core.protocols.llm import LLMProtocol
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
    "ConversationHistoryProtocol",
    "EmbeddingProtocol",
    "LLMMessage",
    "LLMOptions",
    "LLMProtocol",
    "LLMResponse",
    "LLMRole",
    "MemoryProtocol",
    "MemorySearchResult",
    "VectorIndexProtocol",
    "VectorSearchResult",
]
