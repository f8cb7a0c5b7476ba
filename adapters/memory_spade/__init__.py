"""SPADE agents with memory: `MemoryLLMAgent`, or `MemoryMixin` in front of your own agent class.

Names are imported on first use: `MemoryMixin` loads spade but not spade_llm, and the memories load neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_spade.agent import MemoryLLMAgent
    from memory_spade.bank import BankProvider
    from memory_spade.behaviour import MemoryBehaviour
    from memory_spade.chat_model import ProviderModel
    from memory_spade.memory import AgentBaseMemory, AgentInteractionMemory, MemoryBackend, MemoryEntry, SqliteBackend
    from memory_spade.mixin import MemoryMixin
    from memory_spade.retriever import MemoryRetriever

__all__ = [
    "AgentBaseMemory",
    "AgentInteractionMemory",
    "BankProvider",
    "MemoryBackend",
    "MemoryBehaviour",
    "MemoryEntry",
    "MemoryLLMAgent",
    "MemoryMixin",
    "MemoryRetriever",
    "ProviderModel",
    "SqliteBackend",
]

_MODULES = {
    "BankProvider": "memory_spade.bank",
    "MemoryBehaviour": "memory_spade.behaviour",
    "MemoryLLMAgent": "memory_spade.agent",
    "MemoryMixin": "memory_spade.mixin",
    "MemoryRetriever": "memory_spade.retriever",
    "ProviderModel": "memory_spade.chat_model",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'memory_spade' has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "memory_spade.memory")), name)
