"""The protocols of stores and embedders; `memory_core.testing` has a contract for each: a test class to subclass."""

from __future__ import annotations

import os
from asyncio import Future
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, TypeGuard, runtime_checkable

from memory_core.models import (
    Deleted,
    Draft,
    ErasureReceipt,
    Finding,
    Fingerprint,
    Hit,
    Known,
    MemoryRecord,
    Mode,
    Order,
    Page,
    Patch,
    Scope,
    Stats,
    Version,
)
from memory_core.values.progress import ProgressCallback
from memory_core.where.where import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """Shape (n, dimensions), unit rows."""
    Vector = NDArray[np.float32]
    """Shape (dimensions,), unit length."""

Clock = Callable[[], datetime]
"""Returns the current time as an aware datetime."""


class Embedder(Protocol):
    """Turns text into unit vectors. Documents and queries may be embedded differently."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Stored with every vector; a store refuses to mix two fingerprints."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row of float32 per text, in the order given; raises `EmbeddingError`."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """The unit vector of a query; raises `EmbeddingError`."""
        ...

    async def close(self) -> None:
        """Release models and threads; may be called twice."""
        ...


class Familiar(Protocol):
    """Optional for an embedder: it reports whether it knows the language of a text."""

    async def familiarity(self, text: str) -> float:
        """How well it knows the words of a query, from 0 (none) to 1, the weight of cosines. Called after
        `embed_query` with the same text."""
        ...


async def familiarity(embedder: object, text: str) -> float:
    """`Familiar.familiarity`, or 1 if the embedder does not report it."""
    return await embedder.familiarity(text) if _is_familiar(embedder) else 1.0


def _is_familiar(embedder: object) -> TypeGuard[Familiar]:
    """Asked for every query; `isinstance` would take 8 µs for a protocol."""
    return hasattr(embedder, "familiarity")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One complete search request, which every store answers by the same rules."""

    text: str
    limit: int
    mode: Mode
    where: Where
    explain: bool
    floor: bool = True
    """Leave out records that are not relevant; `False` returns the best `limit` records even if none is relevant."""
    context: bool = True
    """Find a turn also by what was said just before and after it; `False` finds only what matches itself."""
    every_word: bool = False
    """Find only records that have every word of the text."""
    recency: float = 0.0
    """Weight of how recent a record is (`retrieval/recency.py`); 0 leaves it out."""
    importance: float = 0.0
    """Weight of a record's importance; 0 leaves it out."""
    vector: Vector | None = field(default=None, compare=False)
    """Unit vector to search for instead of the text; for the mode `vector`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """One page of an unranked listing. `touch` counts the read in `accessed_at` and `access_count`."""

    where: Where
    order: Order
    limit: int
    cursor: str | None
    touch: bool


@runtime_checkable
class Adding(Protocol):
    """Optional for a store: a faster `Records.add` for single records from many callers."""

    def begin_add(
        self, scope: Scope, record: MemoryRecord, done: Future[MemoryRecord | None], *, embed_later: bool
    ) -> None:
        """`Records.add` without a task: returns at once, answers `done` (`loop.answer`) once it is durable."""
        ...


@runtime_checkable
class Reembedding(Protocol):
    """Optional for a store: changing its embedder while in use."""

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None = None) -> int:
        """See `Memory.reembed`; the store owns the embedder once this has returned."""
        ...


@runtime_checkable
class BackingUp(Protocol):
    """Optional for a store: copying itself to a file."""

    async def backup(self, path: str | os.PathLike[str], *, overwrite: bool, progress: ProgressCallback | None) -> Path:
        """See `Memory.backup`."""
        ...


@runtime_checkable
class Listing(Protocol):
    """Optional for a store: a faster `Records.list` for callers on loops other than the core loop."""

    def begin_list(self, scope: Scope, request: ListRequest, done: Future[Page]) -> None:
        """`Records.list` without `touch`, from any thread: returns at once, answers `done` (`loop.answer`)."""
        ...


@runtime_checkable
class SearchingTogether(Protocol):
    """Optional for a store: one ranking over several owners."""

    async def search_together(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        """The best hits of several owners, best first, ranked as if one owner had all their records.

        Args:
            scopes: Of different owners, each with its user set.
        """
        ...


class Records(Protocol):
    """The operations on records. Every call is bounded by a scope whose user is set.

    A write returns only when it is durable, and is applied completely or not at all. A store that cannot promise the
    second for a write of several records says so (`has_atomic_batches`): each of its records is applied completely or
    not at all, a failure in the middle raises `UnfinishedWriteError`, and repeating the call is safe.
    """

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        """Write the records, in order.

        Returns the stored records: for a known source key the existing record, with the new text, author, data and
        tags if they differ; `None` for a forgotten source key. `embed_later` returns before vectors are computed.
        Records in scope that a new record supersedes are retired with it (`superseding.retired`), those named in
        `versions` only in that version; comparing and writing are atomic.

        Raises:
            ConflictError: A record named in `versions` has another version or is gone; nothing is written.
            DuplicateIdError: An id is taken by a record with another source key.
            SupersededError: Another record has superseded one of them already.
        """
        ...

    async def search(self, scope: Scope, request: SearchRequest) -> list[Hit]:
        """The best hits, best first.

        Raises:
            InvalidInputError: The mode is `vector` and there are no vectors, or the request's have another dimension.
        """
        ...

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        """Records that satisfy the request, without ranking."""
        ...

    async def update(
        self,
        scope: Scope,
        id: str,  # noqa: A002  (the record's own word)
        patch: Patch,
        *,
        expected_version: int | None,
    ) -> MemoryRecord:
        """Change a record, if it has the expected version or none is given; comparing and writing are atomic.

        Raises:
            RecordNotFoundError: There is no such record.
            ConflictError: It has another version (`draft_to_record.insist_on_version`).
        """
        ...

    async def delete(
        self,
        scope: Scope,
        where: Where,
        *,
        forget: bool,
        versions: Mapping[str, int] | None = None,
        keeps_derived: bool = False,
    ) -> Deleted:
        """Delete the records that satisfy `where`, and forget their source keys if `forget`; returns how many.

        What was made of their words goes with them (`rules/deriving.py`), unless `keeps_derived`. A store may find them
        first and delete them in parts, each of which is whole.

        With `versions`, by id, what satisfies `where` must be exactly these records in these versions; comparing and
        deleting are atomic. A store without atomic batches compares all of them first, and then each as it goes.

        Raises:
            ConflictError: It is something else (`draft_to_record.insist_on_versions`); nothing was deleted.
            UnfinishedWriteError: Without atomic batches: a part was deleted, and somebody has changed the rest, or the
                server failed.
        """
        ...


class Store(Records, Protocol):
    """Stores the records of all owners: `Records`, and opening, erasing and closing.

    A store needs only these eight methods. The protocols that are optional for a store declare what else it can do;
    having the methods is enough. What is missing is derived, or its operation raises `UnsupportedError`.
    """

    async def open(self) -> None:
        """Prepare the store; called once, before anything else."""
        ...

    async def close(self) -> None:
        """Finish accepted writes, then release files and connections; may be called twice."""
        ...

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """Remove everything in the scope from every file."""
        ...


def has_atomic_batches(store: Store) -> bool:
    """True if a write of several records is applied completely or not at all; a store without the attribute
    `atomic_batches` promises it."""
    return bool(getattr(store, "atomic_batches", True))


@runtime_checkable
class Counting(Protocol):
    """Optional for a store: counts without reading everything."""

    async def stats(self, scope: Scope) -> Stats:
        """Count the records in the scope."""
        ...


@runtime_checkable
class Knowing(Protocol):
    """Optional for a store: which messages it has, without reading whole records."""

    async def known(self, scope: Scope, keys: Sequence[str] | None) -> list[Known]:
        """The records in scope that have a source key, or one of `keys`; in every state, also those that were left, by
        `occurred_at` and, where that is equal, in order of arrival."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """Optional for a store: the earlier texts of a record."""

    async def versions(self, scope: Scope, id: str) -> list[Version]:  # noqa: A002
        """The texts of a record, oldest first, the current one last and open; empty if there is no such record."""
        ...


@runtime_checkable
class KeyValue(Protocol):
    """Optional for a store: the operations of a key-value store, on records with a `source_key` as their key.

    Bounded by the scope, durable and atomic like `Records`.
    """

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str]
    ) -> list[MemoryRecord]:
        """Write records under their source keys and delete those of the source keys in `remove`, all or nothing.

        A record with a known source key replaces the existing record entirely, except for `id`, `created_at` and the
        read counts; `rev` is incremented if the text differs, and searches never find the old text. If two records have
        the same source key, the later one wins. Forgotten keys can be put, and removed keys are not forgotten; unknown
        keys in `remove` are ignored. Superseded records are retired as by `add`.

        Returns:
            The stored record for each record, in order.

        Raises:
            DuplicateIdError: A source key belongs to a record outside the scope, or a new record's id is taken.
        """
        ...

    async def collections(self, scope: Scope, where: Where) -> list[str]:
        """The distinct collections of the records that satisfy `where`, sorted by code points."""
        ...

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """Set `expires_at` by id, and nothing else; ids that are unknown, out of scope or expired are ignored."""
        ...

    async def sweep(self, scope: Scope) -> int:
        """Delete expired records without forgetting their source keys, perhaps in parts; returns how many."""
        ...


@runtime_checkable
class Maintained(Protocol):
    """Optional for a store: operations on all owners at once, not bounded by a scope."""

    async def owners(self) -> list[Scope]:
        """All owners that have a record, by app and user; no other key is bound."""
        ...

    async def check(self) -> list[Finding]:
        """What is wrong with the store."""
        ...

    async def vacuum(self) -> None:
        """Return the space of deleted records, if the store does not do so automatically."""
        ...


class Searching(Protocol):
    """The reads of a memory: what `recall` needs of it."""

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = ...,
        mode: Mode = "hybrid",
        floor: bool = True,
        explain: bool = False,
        apart: bool = False,
    ) -> list[Hit]:
        """See `BoundMemory.search`."""
        ...

    async def list(self, *, where: Where = ..., order: Order = "newest", limit: int = 50) -> Page:
        """See `BoundMemory.list`."""
        ...


class AgentMemory(Searching, Protocol):
    """What an agent's tools and prompts need of a memory. A `BoundMemory` is one.

    Another one may raise `UnsupportedError` for conditions and options that it does not have; it never ignores them.
    """

    @property
    def spaces(self) -> Mapping[str, Literal["read", "write"]]:
        """See `BoundMemory.spaces`; empty for a memory that has none."""
        ...

    def label_of(self, record: MemoryRecord) -> str | None:
        """See `BoundMemory.label_of`."""
        ...

    async def add(
        self, entry: str | Draft, *, embed: Literal["now", "later"] = "now", space: str = ...
    ) -> MemoryRecord:
        """See `BoundMemory.add`."""
        ...

    async def update(self, id: str, patch: Patch) -> MemoryRecord:  # noqa: A002  (the record's own word)
        """See `BoundMemory.update`."""
        ...

    async def delete(self, id: str) -> Deleted | None:  # noqa: A002
        """See `BoundMemory.delete`; `None` if it is not counted what went with the record."""
        ...


class Background(Protocol):
    """What is written in the background."""

    async def settle(self) -> None:
        """Return when everything that it was given so far is stored or has failed; called on the core loop."""
        ...


class Reranker(Protocol):
    """Judges how well texts answer a query, usually with a model that reads both together (a cross-encoder)."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A finite number for each text, in the order given; the higher, the better it answers the query.

        It runs on the loop of the library: await requests, and run a local model in a thread (`asyncio.to_thread`).
        """
        ...


class HitOrder(Protocol):
    """Puts the best hits of a search into another order, and never fails: a `Reranker` with a deadline."""

    def widened(self, request: SearchRequest) -> SearchRequest:
        """The request for the hits to order."""
        ...

    async def reranked(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The hits in the new order, or in their own; await it on the core loop."""
        ...


class Summarizer(Protocol):
    """Summarises several texts, usually with a model; this library never calls a model by itself."""

    async def summarize(self, texts: Sequence[str]) -> str:
        """One text instead of many, given in order. An exception reaches the caller, and nothing has changed then."""
        ...


class ChatMessage(TypedDict):
    """One message to a chat model, in the form of OpenAI's API, which most clients accept as it is."""

    role: Literal["system", "user"]
    content: str


class ChatModel(Protocol):
    """A language model of the caller; this library never calls one by itself."""

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """The text of the answer. An exception of any kind means that the model has not answered."""
        ...
