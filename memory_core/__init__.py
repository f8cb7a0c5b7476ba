"""One durable, searchable memory that agent frameworks share.

Applications and adapters import what they need every day from here. Importing this package loads nothing; each name is
loaded with its module when it is first accessed. `QdrantStore`, `QdrantServer`, `MultilingualEmbedder`,
`MiniLmEmbedder`, `GeminiEmbedder` and `SentenceTransformerEmbedder` then say which extra they need.

Less common things are in submodules: other embedders (`memory_core.embedding`), the options of a Qdrant server
(`memory_core.storage.qdrant.settings`), moves between stores (`memory_core.transfer`), maintenance
(`memory_core.lifecycle`), the protocols of stores (`memory_core.protocols`) and of embedders and other models
(`memory_core.supplied`) and their contract tests (`memory_core.testing`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from memory_core.bank import AsyncMemoryBank, MemoryBank, MemoryEntry, MemoryQuery, MemorySummary
    from memory_core.chunking import Chunker, SentenceChunker, TokenChunker
    from memory_core.concurrency.sync import run_sync
    from memory_core.conversation.messages.message_to_draft import Message, ToolCall
    from memory_core.conversation.messages.triggers import TriggerDetector
    from memory_core.embedding.gemini import GeminiEmbedder as GeminiEmbedder
    from memory_core.embedding.minilm import MiniLmEmbedder as MiniLmEmbedder
    from memory_core.embedding.multilingual import MultilingualEmbedder as MultilingualEmbedder
    from memory_core.embedding.sentence_transformers import SentenceTransformerEmbedder as SentenceTransformerEmbedder
    from memory_core.embedding.threaded import ThreadedEmbedder
    from memory_core.errors import (
        ClosedError,
        ConflictError,
        DamagedStoreError,
        DuplicateIdError,
        EmbeddingError,
        FingerprintError,
        ForgottenError,
        InvalidInputError,
        MemoryCoreError,
        ModelError,
        ModelTimeoutError,
        NewerStoreError,
        NotAStoreError,
        QuotaExceededError,
        ReadOnlyError,
        RecordNotFoundError,
        ScopeError,
        StorageError,
        StoreUnavailableError,
        SupersededError,
        UnfinishedWriteError,
        UnreadableAnswerError,
        UnsupportedError,
        WrongThreadError,
    )
    from memory_core.handle import BoundMemory, SyncMemory
    from memory_core.lifecycle import MaintainPolicy as MaintainPolicy
    from memory_core.lifecycle import maintain as maintain
    from memory_core.lifecycle import undo_maintenance as undo_maintenance
    from memory_core.memory import Memory
    from memory_core.models import (
        Component,
        Deleted,
        Draft,
        ErasureReceipt,
        Finding,
        Fingerprint,
        Hit,
        Json,
        Link,
        MemoryRecord,
        Page,
        Passage,
        Patch,
        Quota,
        Relevance,
        Role,
        Scope,
        Stats,
        Version,
    )
    from memory_core.operator import Operator
    from memory_core.profile import Profile
    from memory_core.protocols import Store
    from memory_core.recall.values import PULLED, PUSHED, Considered, Recalled, RecallOptions
    from memory_core.records.draft_to_record import check_draft
    from memory_core.retrieval.hits import Hits
    from memory_core.settings import DEFAULT_EMBEDDER
    from memory_core.storage.qdrant.settings import Server
    from memory_core.storage.qdrant.store import QdrantStore as QdrantStore
    from memory_core.supplied import ChatMessage, ChatModel, Embedder, Reranker, Summarizer
    from memory_core.values.progress import Progress, ProgressCallback, progress_bar
    from memory_core.values.times import utc_now
    from memory_core.values.unset import UNSET
    from memory_core.where.conditions import AllOf, AnyOf, DataCondition, FieldCondition, NoneOf
    from memory_core.where.documents import data_conditions
    from memory_core.where.where import Where

    QdrantServer = Server

__version__ = "0.1.0"

_NAMES_IN: Final = {  # the imports above once more, for the interpreter
    "memory_core.bank": ("AsyncMemoryBank", "MemoryBank", "MemoryEntry", "MemoryQuery", "MemorySummary"),
    "memory_core.chunking": ("Chunker", "SentenceChunker", "TokenChunker"),
    "memory_core.concurrency.sync": ("run_sync",),
    "memory_core.conversation.messages.message_to_draft": ("Message", "ToolCall"),
    "memory_core.conversation.messages.triggers": ("TriggerDetector",),
    "memory_core.embedding.gemini": ("GeminiEmbedder",),
    "memory_core.embedding.minilm": ("MiniLmEmbedder",),
    "memory_core.embedding.multilingual": ("MultilingualEmbedder",),
    "memory_core.embedding.sentence_transformers": ("SentenceTransformerEmbedder",),
    "memory_core.embedding.threaded": ("ThreadedEmbedder",),
    "memory_core.errors": (
        "ClosedError",
        "ConflictError",
        "DamagedStoreError",
        "DuplicateIdError",
        "EmbeddingError",
        "FingerprintError",
        "ForgottenError",
        "InvalidInputError",
        "MemoryCoreError",
        "ModelError",
        "ModelTimeoutError",
        "NewerStoreError",
        "NotAStoreError",
        "QuotaExceededError",
        "ReadOnlyError",
        "RecordNotFoundError",
        "ScopeError",
        "StorageError",
        "StoreUnavailableError",
        "SupersededError",
        "UnfinishedWriteError",
        "UnreadableAnswerError",
        "UnsupportedError",
        "WrongThreadError",
    ),
    "memory_core.handle": ("BoundMemory", "SyncMemory"),
    "memory_core.lifecycle": ("MaintainPolicy", "maintain", "undo_maintenance"),
    "memory_core.memory": ("Memory",),
    "memory_core.models": (
        "Component",
        "Deleted",
        "Draft",
        "ErasureReceipt",
        "Finding",
        "Fingerprint",
        "Hit",
        "Json",
        "Link",
        "MemoryRecord",
        "Page",
        "Passage",
        "Patch",
        "Quota",
        "Relevance",
        "Role",
        "Scope",
        "Stats",
        "Version",
    ),
    "memory_core.operator": ("Operator",),
    "memory_core.profile": ("Profile",),
    "memory_core.protocols": ("Store",),
    "memory_core.recall.values": ("PULLED", "PUSHED", "Considered", "Recalled", "RecallOptions"),
    "memory_core.records.draft_to_record": ("check_draft",),
    "memory_core.retrieval.hits": ("Hits",),
    "memory_core.settings": ("DEFAULT_EMBEDDER",),
    "memory_core.storage.qdrant.settings": ("QdrantServer",),
    "memory_core.storage.qdrant.store": ("QdrantStore",),
    "memory_core.supplied": ("ChatMessage", "ChatModel", "Embedder", "Reranker", "Summarizer"),
    "memory_core.values.progress": ("Progress", "ProgressCallback", "progress_bar"),
    "memory_core.values.times": ("utc_now",),
    "memory_core.values.unset": ("UNSET",),
    "memory_core.where.conditions": ("AllOf", "AnyOf", "DataCondition", "FieldCondition", "NoneOf"),
    "memory_core.where.documents": ("data_conditions",),
    "memory_core.where.where": ("Where",),
}
_HOME: Final = {name: module for module, names in _NAMES_IN.items() for name in names}
_NAMED_THERE: Final = {"QdrantServer": "Server"}


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def __getattr__(name: str) -> Any:  # typed by the imports above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), _NAMED_THERE.get(name, name))
    return value


__all__ = [
    "DEFAULT_EMBEDDER",
    "PULLED",
    "PUSHED",
    "UNSET",
    "AllOf",
    "AnyOf",
    "AsyncMemoryBank",
    "BoundMemory",
    "ChatMessage",
    "ChatModel",
    "Chunker",
    "ClosedError",
    "Component",
    "ConflictError",
    "Considered",
    "DamagedStoreError",
    "DataCondition",
    "Deleted",
    "Draft",
    "DuplicateIdError",
    "Embedder",
    "EmbeddingError",
    "ErasureReceipt",
    "FieldCondition",
    "Finding",
    "Fingerprint",
    "FingerprintError",
    "ForgottenError",
    "Hit",
    "Hits",
    "InvalidInputError",
    "Json",
    "Link",
    "Memory",
    "MemoryBank",
    "MemoryCoreError",
    "MemoryEntry",
    "MemoryQuery",
    "MemoryRecord",
    "MemorySummary",
    "Message",
    "ModelError",
    "ModelTimeoutError",
    "NewerStoreError",
    "NoneOf",
    "NotAStoreError",
    "Operator",
    "Page",
    "Passage",
    "Patch",
    "Profile",
    "Progress",
    "ProgressCallback",
    "Quota",
    "QuotaExceededError",
    "ReadOnlyError",
    "RecallOptions",
    "Recalled",
    "RecordNotFoundError",
    "Relevance",
    "Reranker",
    "Role",
    "Scope",
    "ScopeError",
    "SentenceChunker",
    "Stats",
    "StorageError",
    "Store",
    "StoreUnavailableError",
    "Summarizer",
    "SupersededError",
    "SyncMemory",
    "ThreadedEmbedder",
    "TokenChunker",
    "ToolCall",
    "TriggerDetector",
    "UnfinishedWriteError",
    "UnreadableAnswerError",
    "UnsupportedError",
    "Version",
    "Where",
    "WrongThreadError",
    "check_draft",
    "data_conditions",
    "progress_bar",
    "run_sync",
    "utc_now",
]
