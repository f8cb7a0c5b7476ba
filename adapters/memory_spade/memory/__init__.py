"""The two memories of spade_llm's document, usable without SPADE: conversation notes and long-term memories.

Replace imports from `spade_llm.memory` with this package: names and signatures are those of the document.
"""

from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.base import MemoryBackend, MemoryEntry
from memory_spade.memory.backends.sqlite_backend import SqliteBackend
from memory_spade.memory.interaction_memory import AgentInteractionMemory

__all__ = ["AgentBaseMemory", "AgentInteractionMemory", "MemoryBackend", "MemoryEntry", "SqliteBackend"]
