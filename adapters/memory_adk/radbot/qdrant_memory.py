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
from typing import Any, Final, Self, overload

from memory_adk.convert import content_text, description
from memory_adk.entries import tags_of
from memory_adk.radbot.embedding import get_embedding_model
from memory_adk.radbot.turns import drafts_of
from memory_adk.recall import find, for_search
from memory_adk.service import MAX_CHARS, MemoryService
from memory_adk.tools import DEFAULT_RESULTS
from memory_core import (
    BoundMemory,
    Draft,
    Embedder,
    InvalidInputError,
    Memory,
    MemoryRecord,
    TriggerDetector,
    Where,
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

    It stores each user message of a session as a `user_query` and each exchange as a `conversation_turn`.

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
        others = (host, port, url, api_key, vector_size, path, embedder)
        if given is not None and any(other is not None for other in others):
            raise InvalidInputError("memory= has its own store and embedder; leave out the others")
        if memory is None:
            from memory_core import QdrantServer, QdrantStore  # noqa: PLC0415  (qdrant-client takes a second)

            where = None if path is None else os.fspath(path)
            server = QdrantServer(url=url, host=host, port=port, path=where, api_key=api_key)
            embedder = embedder or get_embedding_model(vector_size)
            memory = Memory(QdrantStore(server, embedder=embedder, collection=collection_name))
        super().__init__(memory, app_name=app_name, owns_memory=given is None)
        self.memory = memory
        self._app = app_name
        self._detector = detector

    def detecting(self, detector: TriggerDetector) -> Self:
        """Return a service on the same memory that also stores what users ask to be remembered. Close the original."""
        return type(self)(memory=self.memory, app_name=self._app, detector=detector)

    async def drafts(
        self, handle: BoundMemory, events: Sequence[Event], session_id: str | None, metadata: Mapping[str, object]
    ) -> list[Draft]:
        """Drafts for questions, exchanges and the findings of the detector."""
        return await drafts_of(handle, events, session_id, metadata, self._detector)

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
            memory_type: Only memories of this kind.
        """
        where = Where()
        if from_time is not None or memory_type:
            since = None if from_time is None else from_time.astimezone(UTC)
            where = Where(since=since, kinds=(memory_type,) if memory_type else ())
        handle = self.handle(self._app, user_id)
        entries = run_sync(find, handle, query, replace(for_search(limit, MAX_CHARS), where=where))
        return [_found(entry) for entry in entries]

    def clear_user_memory(self, user_id: str) -> int:
        """Delete all memories of a user permanently. Returns the number of deleted memories."""
        return run_sync(self.clear_user, app_name=self._app, user_id=user_id)


def _found(entry: MemoryEntry) -> FoundMemory:
    metadata = dict(entry.custom_metadata)
    return FoundMemory(
        id=str(entry.id),
        text=content_text(entry.content),
        timestamp=datetime.fromisoformat(str(entry.timestamp)),
        memory_type=str(metadata.pop("kind")),
        similarity=metadata.pop("similarity", None),
        metadata=metadata,
    )
