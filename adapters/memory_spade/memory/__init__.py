"""The two memories of spade_llm's document, usable without SPADE: notes of conversations, and long-term memories.

Where spade_llm says `spade_llm.memory`, import from here: the names and signatures are those of its document.
"""

from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.base import MemoryBackend, MemoryEntry
from memory_spade.memory.backends.sqlite_backend import SqliteBackend
from memory_spade.memory.interaction_memory import AgentInteractionMemory

__all__ = ["AgentBaseMemory", "AgentInteractionMemory", "MemoryBackend", "MemoryEntry", "SqliteBackend"]
