"""One durable, searchable memory that agent frameworks share.

Applications and adapters import what they need every day from here. Importing this package loads no framework and no
numerical package; those are loaded on first use. `QdrantStore`, `QdrantServer`, `MiniLmEmbedder`, `GeminiEmbedder`
and `SentenceTransformerEmbedder` are loaded when they are accessed, and then say which extra they need.

Less common things are in submodules: other embedders (`memory_core.embedding`), the options of a Qdrant server
(`memory_core.storage.qdrant.settings`), moves between stores (`memory_core.transfer`), maintenance
(`memory_core.lifecycle`), the protocols of stores and embedders (`memory_core.protocols`) and their contract tests
(`memory_core.testing`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from memory_core.bank import AsyncMemoryBank, MemoryBank, MemoryEntry, MemoryQuery, MemorySummary
from memory_core.chunking import Chunker, SentenceChunker, TokenChunker
from memory_core.concurrency.sync import run_sync
from memory_core.conversation.messages.message_to_draft import Message, ToolCall
from memory_core.conversation.messages.triggers import TriggerDetector
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
from memory_core.protocols import ChatMessage, ChatModel, Embedder, Reranker, Store, Summarizer
from memory_core.recall.values import PULLED, PUSHED, Considered, Recalled, RecallOptions
from memory_core.records.draft_to_record import check_draft
from memory_core.retrieval.hits import Hits
from memory_core.settings import DEFAULT_EMBEDDER
from memory_core.values.progress import Progress, ProgressCallback, progress_bar
from memory_core.values.times import utc_now
from memory_core.values.unset import UNSET
from memory_core.where.conditions import AllOf, AnyOf, DataCondition, FieldCondition, NoneOf
from memory_core.where.documents import data_conditions
from memory_core.where.where import Where

if TYPE_CHECKING:
    from memory_core.embedding.gemini import GeminiEmbedder as GeminiEmbedder
    from memory_core.embedding.minilm import MiniLmEmbedder as MiniLmEmbedder
    from memory_core.embedding.sentence_transformers import SentenceTransformerEmbedder as SentenceTransformerEmbedder
    from memory_core.lifecycle import MaintainPolicy as MaintainPolicy
    from memory_core.lifecycle import maintain as maintain
    from memory_core.lifecycle import undo_maintenance as undo_maintenance
    from memory_core.storage.qdrant.settings import Server
    from memory_core.storage.qdrant.store import QdrantStore as QdrantStore

    QdrantServer = Server

_AT_FIRST_USE: Final = {
    "GeminiEmbedder": ("memory_core.embedding.gemini", "GeminiEmbedder"),
    "MaintainPolicy": ("memory_core.lifecycle", "MaintainPolicy"),
    "MiniLmEmbedder": ("memory_core.embedding.minilm", "MiniLmEmbedder"),
    "QdrantServer": ("memory_core.storage.qdrant.settings", "Server"),
    "QdrantStore": ("memory_core.storage.qdrant.store", "QdrantStore"),
    "SentenceTransformerEmbedder": ("memory_core.embedding.sentence_transformers", "SentenceTransformerEmbedder"),
    "maintain": ("memory_core.lifecycle", "maintain"),
    "undo_maintenance": ("memory_core.lifecycle", "undo_maintenance"),
}


__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *_AT_FIRST_USE})


def __getattr__(name: str) -> Any:  # typed by the imports above
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _AT_FIRST_USE[name]
    return getattr(import_module(module), attribute)


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
