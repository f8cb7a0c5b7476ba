"""File formats of spade_llm for import and export, implemented without its code."""

from memory_spade.files.agent_memories import agent_memories, prepare_agent_memories
from memory_spade.files.names import BASE_COLLECTION, identity, safe_name, timestamp
from memory_spade.files.notes import NotesFile
from memory_spade.files.tables import export_agent_memories

__all__ = [
    "BASE_COLLECTION",
    "NotesFile",
    "agent_memories",
    "export_agent_memories",
    "identity",
    "prepare_agent_memories",
    "safe_name",
    "timestamp",
]
