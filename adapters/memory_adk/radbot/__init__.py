"""RadBot's memory system for the current ADK: the documented classes and factories, on any store of memory-core.

`radbot.memory.…` and `radbot.agent.…` become `memory_adk.radbot`; docs/howto/radbot.md lists the differences.
"""

from memory_adk.radbot.agents import (
    EnhancedMemoryAgent,
    MemoryAgent,
    create_enhanced_memory_agent,
    create_memory_enabled_agent,
)
from memory_adk.radbot.embedding import EmbeddingModel, embed_text, get_embedding_model
from memory_adk.radbot.enhanced_memory import EnhancedMemoryManager, MemoryDetector
from memory_adk.radbot.memories import FoundMemory
from memory_adk.radbot.memory_tools import search_past_conversations, store_important_information
from memory_adk.radbot.qdrant_memory import QdrantMemoryService

__all__ = [
    "EmbeddingModel",
    "EnhancedMemoryAgent",
    "EnhancedMemoryManager",
    "FoundMemory",
    "MemoryAgent",
    "MemoryDetector",
    "QdrantMemoryService",
    "create_enhanced_memory_agent",
    "create_memory_enabled_agent",
    "embed_text",
    "get_embedding_model",
    "search_past_conversations",
    "store_important_information",
]
