"""Memories from and for other systems: their file formats, and nothing of their code."""

from memory_core.portability.spade_adoption import AgentMemories, prepare_agent_memories
from memory_core.portability.spade_names import BASE_COLLECTION, identity, safe_name, timestamp
from memory_core.portability.spade_notes import NotesFile
from memory_core.portability.spade_tables import export_agent_memories

__all__ = [
    "BASE_COLLECTION",
    "AgentMemories",
    "NotesFile",
    "export_agent_memories",
    "identity",
    "prepare_agent_memories",
    "safe_name",
    "timestamp",
]
