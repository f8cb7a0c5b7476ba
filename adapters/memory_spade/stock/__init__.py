"""`spade_llm.memory` with the names, signatures and words of spade_llm 0.3's code, on the records of this package.

Agents written for that code change their imports: `from memory_spade.stock import AgentBaseMemory`. New code uses
`memory_spade`, whose memories follow spade_llm's document, check every value and report every failure.
"""

from memory_spade.stock.agent_base_memory import AgentBaseMemory
from memory_spade.stock.backend import SQLiteMemoryBackend
from memory_spade.stock.entries import MemoryBackend, MemoryEntry
from memory_spade.stock.interaction_memory import AgentInteractionMemory
from memory_spade.stock.tools import (
    AgentBaseMemoryListTool,
    AgentBaseMemorySearchTool,
    AgentBaseMemoryStoreTool,
    AgentMemoryTool,
    create_base_memory_tools,
)

__all__ = [
    "AgentBaseMemory",
    "AgentBaseMemoryListTool",
    "AgentBaseMemorySearchTool",
    "AgentBaseMemoryStoreTool",
    "AgentInteractionMemory",
    "AgentMemoryTool",
    "MemoryBackend",
    "MemoryEntry",
    "SQLiteMemoryBackend",
    "create_base_memory_tools",
]
