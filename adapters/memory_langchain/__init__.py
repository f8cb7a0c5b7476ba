"""LangChain and LangGraph on memory-core: history, recall, retriever, tools and agents over one memory.

| to get | use |
|---|---|
| a chain that remembers the conversation and the user | `with_memory` |
| the messages of a conversation | `MemoryChatMessageHistory` |
| memories as documents | `MemoryRetriever` |
| your own documents in a `VectorStore` | `MemoryVectorStore` |
| tools with which a model stores and finds memories | `memory_tools` |
| an agent (`create_agent`) that remembers | `MemoryMiddleware` |
| the same in a graph of your own | `recall_node` and `remember_node` |
| the last steps of an agent, even if its context window no longer shows them | `BankMiddleware` |
| the long-term store of a LangGraph graph | `MemoryStore` |
| the `memory=` of a classic chain | `ConversationMemory` |

Every name is imported on first use, so that a chain does not load packages that only agents need. Where such a package
is missing, the import of the name says what to install.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memory_langchain.bank import BankMiddleware
    from memory_langchain.chat_model import LangChainModel
    from memory_langchain.classic import ConversationMemory
    from memory_langchain.embedding import LangChainEmbedder
    from memory_langchain.history import MemoryChatMessageHistory
    from memory_langchain.middleware import MemoryMiddleware
    from memory_langchain.namespaces import id_of_label, namespace_label
    from memory_langchain.nodes import recall_node, remember_node
    from memory_langchain.retriever import MemoryRetriever
    from memory_langchain.runnable import MemoryRunnable, with_memory
    from memory_langchain.store import AsyncMemoryStore, MemoryStore
    from memory_langchain.tools import memory_tools
    from memory_langchain.vectorstore import MemoryVectorStore

__all__ = [
    "AsyncMemoryStore",
    "BankMiddleware",
    "ConversationMemory",
    "LangChainEmbedder",
    "LangChainModel",
    "MemoryChatMessageHistory",
    "MemoryMiddleware",
    "MemoryRetriever",
    "MemoryRunnable",
    "MemoryStore",
    "MemoryVectorStore",
    "id_of_label",
    "memory_tools",
    "namespace_label",
    "recall_node",
    "remember_node",
    "with_memory",
]

_HOME: Final = {
    "AsyncMemoryStore": "store",
    "BankMiddleware": "bank",
    "ConversationMemory": "classic",
    "LangChainEmbedder": "embedding",
    "LangChainModel": "chat_model",
    "MemoryChatMessageHistory": "history",
    "MemoryMiddleware": "middleware",
    "MemoryRetriever": "retriever",
    "MemoryRunnable": "runnable",
    "MemoryStore": "store",
    "MemoryVectorStore": "vectorstore",
    "id_of_label": "namespaces",
    "memory_tools": "tools",
    "namespace_label": "namespaces",
    "recall_node": "nodes",
    "remember_node": "nodes",
    "with_memory": "runnable",
}
_NEEDED: Final = {
    "bank": ("langchain", "langgraph"),
    "classic": ("langchain-classic", "classic"),
    "middleware": ("langchain", "langgraph"),
    "namespaces": ("langgraph", "langgraph"),
    "nodes": ("langgraph", "langgraph"),
    "store": ("langgraph", "langgraph"),
}
"""The package that a module needs beside langchain-core, and the extra that installs it."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    try:
        value: object = getattr(import_module(f"{__name__}.{home}"), name)
    except ImportError as error:
        package, extra = _NEEDED.get(home, ("langchain-core", "langchain"))
        raise ImportError(f"`{name}` needs {package}: pip install 'memory-core[{extra}]'") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
