"""RadBot's memory service on one Qdrant collection: ADK's five methods and those of RadBot's document."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import os
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import CoroutineType
from typing import Any, ClassVar, Final, Self, overload

from memory_adk.convert import description
from memory_adk.entries import tags_of
from memory_adk.radbot.embedding import EmbeddingModel, get_embedding_model, model_of
from memory_adk.radbot.turns import (
    ANSWERED,
    ASKED,
    REMEMBERED,
    bring_up_to_date,
    drafts_of,
    keys_of_turns,
    of_type,
    text_as,
)
from memory_adk.recall import as_results, find, for_search
from memory_adk.service import MAX_CHARS, MemoryService
from memory_adk.tools import DEFAULT_RESULTS
from memory_core import (
    BoundMemory,
    Draft,
    Embedder,
    Hit,
    InvalidInputError,
    Memory,
    MemoryRecord,
    RecallOptions,
    TriggerDetector,
    run_sync,
)

APP_NAME: Final = "radbot"


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory as `search_memories` returns it."""

    id: str
    text: str
    timestamp: datetime
    """Time of the message, with time zone."""
    memory_type: str
    similarity: float | None
    """0 to 1; `None` if no vector was compared."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class QdrantMemoryService(MemoryService):
    """A `MemoryService` on a Qdrant server, with the method names of RadBot's document.

    It connects on first use. Omitted arguments come from the environment: `QDRANT_URL`, else `QDRANT_HOST` and
    `QDRANT_PORT`, else `localhost:6333`; `QDRANT_API_KEY`; see also `get_embedding_model`. The documented methods are
    synchronous and can be called from any thread, even inside a running event loop, which they block; ADK's methods
    are coroutines.

    A message is one record, with everything it stands for: it begins as a `user_query`, becomes a `conversation_turn`
    when it is answered, and is an `important_fact` as well if that was asked for. Deleting it forgets all of this.

    Args:
        collection_name: The collection; services with different collections share nothing.
        host: Host of the server.
        port: Port of the server, 6333 by default.
        url: URL instead of host and port, for example for Qdrant Cloud.
        api_key: API key of the server.
        vector_size: See `get_embedding_model`.
        path: A folder, or `":memory:"`, instead of a server: qdrant-client's own Python implementation, for tests.
        embedder: Replaces the embedder named by the environment.
        memory: Your own memory on any store, instead of all these arguments. You close it.
        app_name: The app of all memories, regardless of ADK's app name, because RadBot's agents share their memories.
        detector: If given, also store what the user asks to be remembered ("important: …").
    """

    whole_turns: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913  (documented so)
        self,
        collection_name: str = "agent_memory",
        host: str | None = None,
        port: int | None = None,
        url: str | None = None,
        api_key: str | None = None,
        vector_size: int | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        embedder: Embedder | None = None,
        memory: Memory | None = None,
        app_name: str = APP_NAME,
        detector: TriggerDetector | None = None,
    ) -> None:
        given = memory
        self.collection_name = collection_name
        self.embedding_model: EmbeddingModel | None = None
        """`None` if `memory` is given, which has its own embedder."""
        others = (host, port, url, api_key, vector_size, path, embedder)
        if given is not None and any(other is not None for other in others):
            raise InvalidInputError("memory= has its own store and embedder; leave out the others")
        if memory is None:
            from memory_core import QdrantServer, QdrantStore  # noqa: PLC0415  (qdrant-client takes a second)

            where = None if path is None else os.fspath(path)
            server = QdrantServer(url=url, host=host, port=port, path=where, api_key=api_key)
            self.embedding_model = model_of(embedder) if embedder else get_embedding_model(vector_size)
            memory = Memory(QdrantStore(server, embedder=self.embedding_model.client, collection=collection_name))
        super().__init__(memory, app_name=app_name, owns_memory=given is None)
        self.memory = memory
        self._app = app_name
        self._detector = detector

    def detecting(self, detector: TriggerDetector) -> Self:
        """Return a service on the same memory that also stores what users ask to be remembered. Close the original."""
        return type(self)(memory=self.memory, app_name=self._app, detector=detector)

    @property
    def vector_size(self) -> int | None:
        """Dimensions of the vectors; `None` if `memory` was given."""
        return None if self.embedding_model is None else self.embedding_model.vector_size

    async def drafts(
        self, handle: BoundMemory, events: Mapping[str, Event], session_id: str | None, metadata: Mapping[str, object]
    ) -> list[Draft]:
        """Drafts for turns, with the findings of the detector."""
        return await drafts_of(handle, events, session_id, metadata, self._detector)

    def keys(self, events: Mapping[str, Event], session_id: str) -> Sequence[str]:
        """The keys of turns."""
        return keys_of_turns(events, session_id)

    async def store(self, handle: BoundMemory, drafts: Sequence[Draft]) -> list[MemoryRecord]:
        """Store turns; one that has been answered, or is to be remembered, gets that type."""
        records = await super().store(handle, drafts)
        await bring_up_to_date(handle, records)
        return records

    def entry(self, hit: Hit, text: str) -> MemoryEntry:
        """Return what ADK's search returns for a hit, without the parts of a turn that its text contains."""
        data = {name: value for name, value in hit.record.data.items() if name not in (ASKED, ANSWERED, REMEMBERED)}
        return super().entry(replace(hit, record=replace(hit.record, data=data)), text)

    def process_session(self, session: Session) -> None:
        """Store the messages of a session; may be called repeatedly."""
        run_sync(self.add_session_to_memory, session)

    async def remember(
        self,
        text: str,
        user_id: str,
        memory_type: str = "important_fact",
        metadata: Mapping[str, object] | None = None,
    ) -> MemoryRecord:
        """Store one memory of a user; `add_memory` for coroutines.

        Args:
            text: The text to remember.
            user_id: The owner.
            memory_type: The kind; any word.
            metadata: Returned with the memory; `tags`, a list, can be used in searches.
        """
        given = metadata or {}
        draft = Draft(text, kind=memory_type, tags=tags_of(given), data=description(given))
        return await self.handle(self._app, user_id).add(draft)

    @overload
    def add_memory(
        self,
        text: str,
        user_id: str,
        memory_type: str = "important_fact",
        metadata: Mapping[str, object] | None = None,
    ) -> str: ...

    @overload
    def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> CoroutineType[Any, Any, None]: ...

    def add_memory(
        self,
        text: str | None = None,
        user_id: str = "",
        memory_type: str = "important_fact",
        metadata: Mapping[str, object] | None = None,
        *,
        app_name: str | None = None,
        memories: Sequence[MemoryEntry] = (),
        custom_metadata: Mapping[str, object] | None = None,
    ) -> str | Coroutine[Any, Any, None]:
        """Store one memory as RadBot documents it and return its id; or, if awaited, act as ADK's `add_memory`.

        The two methods share a name; calls without `text` are ADK's. See `remember` for the arguments.
        """
        if text is not None:
            return run_sync(self.remember, text, user_id, memory_type, metadata).id
        return super().add_memory(
            app_name=app_name or self._app, user_id=user_id, memories=memories, custom_metadata=custom_metadata
        )

    def search_memories(
        self,
        query: str,
        user_id: str,
        limit: int = DEFAULT_RESULTS,
        from_time: datetime | None = None,
        memory_type: str | None = None,
    ) -> list[FoundMemory]:
        """Find a user's memories by meaning and words, best first; the list is empty if nothing is relevant.

        Args:
            query: A question or some words.
            user_id: The owner.
            limit: At most this many, 1 to 3,000.
            from_time: Only memories since this time; without a time zone it is local time.
            memory_type: Only memories of this type, as texts of this type; `"all"` for memories of every type.
        """
        where = of_type(memory_type)
        if from_time is not None:
            where = replace(where, since=from_time.astimezone(UTC))
        options = as_results(replace(for_search(limit, MAX_CHARS), where=where))
        hits = run_sync(self._found, self.handle(self._app, user_id), query, options)
        return [_found(hit, memory_type) for hit, _ in hits]

    async def _found(self, handle: BoundMemory, query: str, options: RecallOptions) -> list[tuple[Hit, str]]:
        return await self.access.run(lambda: find(handle, query, options))

    def clear_user_memory(self, user_id: str) -> int:
        """Delete all memories of a user permanently. Returns the number of deleted memories."""
        return run_sync(self.clear_user, app_name=self._app, user_id=user_id)


def _found(hit: Hit, memory_type: str | None) -> FoundMemory:
    record = hit.record
    as_type = record.kind if memory_type in (None, "", "all") else str(memory_type)
    tags = {"tags": list(record.tags)} if record.tags else {}
    session = {"session_id": record.session} if record.session else {}
    return FoundMemory(
        id=record.id,
        text=text_as(record, as_type),
        timestamp=record.occurred_at,
        memory_type=as_type,
        similarity=hit.similarity,
        metadata={**record.data, **session, **tags},
    )
