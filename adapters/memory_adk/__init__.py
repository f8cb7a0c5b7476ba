"""memory-core for Google ADK: a memory service, a plugin that captures and recalls automatically, and tools."""

try:
    import google.adk  # noqa: F401  # pyright: ignore[reportUnusedImport]  # every module needs it and comes after
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from memory_adk.bank import BankPlugin
from memory_adk.chat_model import AdkModel
from memory_adk.plugin import MemoryPlugin
from memory_adk.policy import CapturePolicy
from memory_adk.service import MemoryService
from memory_adk.toolset import MemoryToolset
from memory_adk.uri import memory_service

__all__ = [
    "AdkModel",
    "BankPlugin",
    "CapturePolicy",
    "MemoryPlugin",
    "MemoryService",
    "MemoryToolset",
    "memory_service",
]
