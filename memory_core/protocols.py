"""The seams: everything a store or an embedder has to be.

Implementations need not import or inherit anything from here; having the methods is enough.
`memory_core.testing` ships a test class for each, which an implementation subclasses.
"""

from __future__ import annotations

import os
from asyncio import Future
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from memory_core.errors import InvalidInputError
from memory_core.models import (
    Draft,
    ErasureReceipt,
    Fingerprint,
    Hit,
    MemoryRecord,
    Mode,
    Order,
    Page,
    Patch,
    Scope,
    Stats,
    Version,
)
from memory_core.progress import ProgressCallback
from memory_core.where.value import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """Shape (n, dimensions), unit rows."""
    Vector = NDArray[np.float32]
    """Shape (dimensions,), unit length."""

Clock = Callable[[], datetime]
"""Returns the present moment as an aware datetime."""


class Embedder(Protocol):
    """Turns text into unit vectors. Documents and queries may be embedded differently."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Stored beside every vector; a store refuses to mix two."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row of float32 per text, in the order given; raises `EmbeddingError`."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """The unit vector of a question; raises `EmbeddingError`."""
        ...

    async def close(self) -> None:
        """Let go of models and threads; may be called twice."""
        ...


@runtime_checkable
class Familiar(Protocol):
    """What an embedder may have beside the rest: it can tell whether it knows a language."""

    async def familiarity(self, text: str) -> float:
        """How far it knows the words of a question, from 0 (none) to 1; cosines count by it. Called after
        `embed_query` of the same text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One search, complete: what every store answers by the same rules."""

    text: str
    limit: int
    mode: Mode
    where: Where
    explain: bool
    floor: bool = True
    """Leave out what is not relevant; without it the best `limit` come back, however far away they are."""
    every_word: bool = False
    """Only records that have every word of the text."""
    recency: float = 0.0
    """Weight of how recent a record is, as `retrieval/preferences.py` says; 0 leaves it out."""
    importance: float = 0.0
    """Weight of a record's importance; 0 leaves it out."""
    vector: Vector | None = field(default=None, compare=False)
    """What to search for in the place of the text, of unit length; for the mode `vector`."""

    def insist_on(self, embedder: Embedder | None) -> None:
        """Refuse to search by meaning alone where nothing has a vector, or by a vector that is like no other here."""
        if self.mode == "vector" and embedder is None:
            raise InvalidInputError(
                "this memory was opened with embedder=None, so there are no vectors for mode='vector' to compare; open "
                "it with an embedder (Memory(path) brings one), or search with mode='lexical' or 'hybrid'"
            )
        if self.vector is not None and embedder is not None:
            wanted = embedder.fingerprint.dimensions
            if len(self.vector) != wanted:
                raise InvalidInputError(f"the vectors of this memory have {wanted} numbers, not {len(self.vector)}")


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
    """What a store may have beside `Records.add`, for one record at a time by many callers."""

    def begin_add(
        self, scope: Scope, record: MemoryRecord, done: Future[MemoryRecord | None], *, embed_later: bool
    ) -> None:
        """`Records.add` without a task: returns at once, answers `done` (`crossing.answer`) once it is durable."""
        ...


@runtime_checkable
class Reembedding(Protocol):
    """What a store may have beside the rest: another embedder while it is used."""

    async def reembed(self, embedder: Embedder, progress: ProgressCallback | None = None) -> int:
        """See `Memory.reembed`; the embedder is the store's own once this has returned."""
        ...


@runtime_checkable
class BackingUp(Protocol):
    """What a store may have beside the rest: a copy of itself in a file."""

    async def backup(self, path: str | os.PathLike[str], *, overwrite: bool, progress: ProgressCallback | None) -> Path:
        """See `Memory.backup`."""
        ...


@runtime_checkable
class Listing(Protocol):
    """What a store may have beside `Records.list`, for callers on other loops than the memory's own."""

    def begin_list(self, scope: Scope, request: ListRequest, done: Future[Page]) -> None:
        """`Records.list` without `touch`, from any thread: returns at once, answers `done` (`crossing.answer`)."""
        ...


class Records(Protocol):
    """The work on records. Every call is bounded by a scope whose user is set.

    A write has returned only when it is durable; all or nothing of it happened.
    """

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        progress: ProgressCallback | None = None,
    ) -> list[MemoryRecord | None]:
        """Write the records, in order.

        What comes back is what is stored: for a known source key the older record, with the new text, author, data and
        tags where they differ; `None` for a source key that was forgotten on purpose. `embed_later` returns before
        vectors are computed; `progress`, where given, is called as they are computed, by a store that can tell. Records
        that a new one supersedes, and that the scope reaches, are retired with it (`drafts.retired`).

        Raises:
            DuplicateIdError: An id is taken by a record of another source key.
            SupersededError: Another record has superseded one of those already.
        """
        ...

    async def search(self, scope: Scope, request: SearchRequest) -> list[Hit]:
        """The best hits, best first."""
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
        """Change a record, if it is of the expected version or none is given: compared and written in one step.

        Raises:
            RecordNotFoundError: There is no such record.
            ConflictError: It is of another version (`drafts.insist_on_version`).
        """
        ...

    async def delete(self, scope: Scope, where: Where, *, forget: bool) -> int:
        """Delete what satisfies `where`; with `forget`, its source keys cannot be added again. Returns how many."""
        ...


class Store(Records, Protocol):
    """What keeps the records of all owners: `Records` that somebody opens, erases from and closes.

    These eight methods are all that a store needs. What it may have beside them is in the protocols `Counting`,
    `Versioned`, `KeyValue`, `Maintained`, `Adding`, `Listing`, `Reembedding` and `BackingUp`; having the methods is
    enough. Counts and collections are derived where a store does not tell them; what cannot be derived raises
    `UnsupportedError`.
    """

    async def open(self) -> None:
        """Make ready; called once, before anything else."""
        ...

    async def close(self) -> None:
        """Finish what was accepted, then let go of files and connections; may be called twice."""
        ...

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """Remove everything in the scope from every file."""
        ...


@runtime_checkable
class Counting(Protocol):
    """What a store may have beside the rest: counts without reading everything."""

    async def stats(self, scope: Scope) -> Stats:
        """Count what is in the scope."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """What a store may have beside the rest: the texts a record had before."""

    async def versions(self, scope: Scope, id: str) -> list[Version]:  # noqa: A002
        """What a record said and says, oldest first, the last of them open; empty if there is no such record."""
        ...


@runtime_checkable
class KeyValue(Protocol):
    """What a store may have beside the rest: the work of a key-value store on records whose `source_key` is their name.

    Bounded, durable and atomic as `Records` are.
    """

    async def put(
        self, scope: Scope, records: Sequence[MemoryRecord], *, remove: Collection[str]
    ) -> list[MemoryRecord]:
        """Write records under their source keys and delete those of the source keys in `remove`, all or nothing.

        A record under a known source key takes its place entirely, except for `id`, `created_at` and the counts of
        reads; `rev` is one more if the text differs, and what is searched is never the old text. Of two records of one
        source key the later counts. Tombstones neither block nor arise; unknown keys in `remove` are fine. What they
        supersede is retired as by `add`.

        Returns:
            What is stored for each record, in order.

        Raises:
            DuplicateIdError: A source key belongs to a record outside of the scope, or a new record's id is taken.
        """
        ...

    async def collections(self, scope: Scope, where: Where) -> list[str]:
        """The distinct collections of the records that satisfy `where`, sorted by code points."""
        ...

    async def postpone(self, scope: Scope, expiries: Mapping[str, datetime | None]) -> None:
        """Set `expires_at` by id, and nothing else; ids that are unknown, out of reach or expired are left alone."""
        ...

    async def sweep(self, scope: Scope) -> int:
        """Delete what has expired, without tombstones; returns how many."""
        ...


@runtime_checkable
class Maintained(Protocol):
    """What a store may have beside the rest: the work on all owners at once, which no scope bounds."""

    async def owners(self) -> list[Scope]:
        """Everybody who has a record, by app and user, each with nothing else bound."""
        ...

    async def check(self) -> list[str]:
        """What is wrong, one sentence each; empty if nothing is."""
        ...

    async def vacuum(self) -> None:
        """Give the space of what was deleted back, if the store does not do so by itself."""
        ...


class AgentMemory(Protocol):
    """What an agent's tools and prompts need of a memory. A `BoundMemory` is one.

    Another one may raise `UnsupportedError` for conditions and options that it does not have; it never ignores them.
    """

    async def add(self, entry: str | Draft, *, embed: Literal["now", "later"] = "now") -> MemoryRecord:
        """See `BoundMemory.add`."""
        ...

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = ...,
        mode: Mode = "hybrid",
        floor: bool = True,
        explain: bool = False,
    ) -> list[Hit]:
        """See `BoundMemory.search`."""
        ...

    async def list(self, *, where: Where = ..., order: Order = "newest", limit: int = 50) -> Page:
        """See `BoundMemory.list`."""
        ...

    async def update(self, id: str, patch: Patch) -> MemoryRecord:  # noqa: A002  (the record's own word)
        """See `BoundMemory.update`."""
        ...

    async def delete(self, id: str) -> None:  # noqa: A002
        """See `BoundMemory.delete`."""
        ...


class Home(Protocol):
    """What handles work on: a `Memory`."""

    clock: Clock
    """Returns the present moment."""

    async def ready(self) -> Store:
        """The open store."""
        ...

    def add_one(self, scope: Scope, record: MemoryRecord, *, embed_later: bool) -> Awaitable[MemoryRecord | None]:
        """`Records.add` of one record, on the shortest way that the store offers."""
        ...

    def list_page(self, scope: Scope, request: ListRequest) -> Awaitable[Page]:
        """`Records.list`, on the shortest way that the store offers."""
        ...

    async def close(self) -> None:
        """See `Memory.close`."""
        ...


class Summarizer(Protocol):
    """Tells briefly what several texts say. The work of a model, which this library never asks for by itself."""

    async def summarize(self, texts: Sequence[str]) -> str:
        """One text instead of many, given in order. What it raises reaches the caller, and nothing has changed then."""
        ...
