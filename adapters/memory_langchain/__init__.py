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
| a summary instead of old messages | `ModelSummarizer` |
| the `memory=` of a classic chain | `ConversationMemory` |

Every name is imported on first use, so that a chain does not load packages that only agents need.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memory_langchain.bank import BankMiddleware
    from memory_langchain.classic import ConversationMemory
    from memory_langchain.embedding import LangChainEmbedder
    from memory_langchain.history import MemoryChatMessageHistory
    from memory_langchain.middleware import MemoryMiddleware
    from memory_langchain.namespaces import id_of_label, namespace_label
    from memory_langchain.nodes import recall_node, remember_node
    from memory_langchain.retriever import MemoryRetriever
    from memory_langchain.runnable import MemoryRunnable, with_memory
    from memory_langchain.scope import CallScope, ScopeResolver
    from memory_langchain.store import AsyncMemoryStore, MemoryStore
    from memory_langchain.summaries import ModelSummarizer
    from memory_langchain.tools import memory_tools
    from memory_langchain.vectorstore import MemoryVectorStore

    __all__ = [
        "AsyncMemoryStore",
        "BankMiddleware",
        "CallScope",
        "ConversationMemory",
        "LangChainEmbedder",
        "MemoryChatMessageHistory",
        "MemoryMiddleware",
        "MemoryRetriever",
        "MemoryRunnable",
        "MemoryStore",
        "MemoryVectorStore",
        "ModelSummarizer",
        "ScopeResolver",
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
    "CallScope": "scope",
    "ConversationMemory": "classic",
    "LangChainEmbedder": "embedding",
    "MemoryChatMessageHistory": "history",
    "MemoryMiddleware": "middleware",
    "MemoryRetriever": "retriever",
    "MemoryRunnable": "runnable",
    "MemoryStore": "store",
    "MemoryVectorStore": "vectorstore",
    "ModelSummarizer": "summaries",
    "ScopeResolver": "scope",
    "id_of_label": "namespaces",
    "memory_tools": "tools",
    "namespace_label": "namespaces",
    "recall_node": "nodes",
    "remember_node": "nodes",
    "with_memory": "runnable",
}


_PACKAGES: Final = {
    "bank": "langchain",
    "classic": "langchain_classic",
    "middleware": "langchain",
    "namespaces": "langgraph",
    "store": "langgraph",
}
"""The optional package that a module needs."""


def __getattr__(name: str) -> object:
    if name == "__all__":  # what `import *` can load with the packages that are installed
        return [known for known, home in _HOME.items() if home not in _PACKAGES or find_spec(_PACKAGES[home])]
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ImportError as missing:
        if _HOME[name] not in _PACKAGES or _is_imported():
            raise
        raise AttributeError(str(missing)) from missing  # so `hasattr` is false, as for any name that is not there
    globals()[name] = value
    return value


def _is_imported() -> bool:
    """Whether a `from` statement looks the name up: it hides the message of an `AttributeError`."""
    import inspect  # noqa: PLC0415  (only where a package is missing)

    frames = inspect.stack(context=0)[1:3]
    return frames[-1].frame.f_globals.get("__name__") == "importlib._bootstrap"


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
