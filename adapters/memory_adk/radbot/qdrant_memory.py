"""RadBot's memory service: a `MemoryService` with the methods of its document."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from types import CoroutineType
from typing import Any, Final, overload

from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session

from memory_adk.convert import description
from memory_adk.entries import tags_of
from memory_adk.radbot.embedding import EmbeddingModel, get_embedding_model
from memory_adk.radbot.memories import FoundMemory, search
from memory_adk.service import MemoryService
from memory_adk.tools import DEFAULT_RESULTS
from memory_core import BoundMemory, Draft, InvalidInputError, Memory, run_sync
from memory_core.adapting import operations

APP_NAME: Final = "radbot"
"""The app of all memories, whatever ADK's app name is, because RadBot's agents share their memories."""


class QdrantMemoryService(MemoryService):
    """RadBot's memories on a Qdrant server.

    It connects on first use. Omitted arguments come from the environment: `QDRANT_URL`, else `QDRANT_HOST` and
    `QDRANT_PORT`, else `localhost:6333`; `QDRANT_API_KEY`; see also `get_embedding_model`. The documented methods are
    synchronous and can be called from any thread, even inside a running event loop, which they block; ADK's methods
    are coroutines.

    Args:
        collection_name: The collection; services with different collections share nothing.
        host: Host of the server.
        port: Port of the server, 6333 by default.
        url: URL instead of host and port, for example for Qdrant Cloud.
        api_key: API key of the server.
        vector_size: See `get_embedding_model`.
        memory: Your own memory on any store, instead of all these arguments. You close it. A bound handle also names
            the app, which is `radbot` otherwise.
    """

    def __init__(
        self,
        collection_name: str = "agent_memory",
        host: str | None = None,
        port: int | None = None,
        url: str | None = None,
        api_key: str | None = None,
        vector_size: int | None = None,
        *,
        memory: Memory | BoundMemory | None = None,
    ) -> None:
        self.collection_name = collection_name
        self.embedding_model: EmbeddingModel | None = None
        """`None` if `memory` is given, which has its own embedder."""
        if memory is None:
            from memory_core import QdrantServer, QdrantStore  # noqa: PLC0415  (qdrant-client takes a second)

            server = QdrantServer(url=url, host=host, port=port, api_key=api_key)
            self.embedding_model = get_embedding_model(vector_size)
            own = Memory(QdrantStore(server, embedder=self.embedding_model.client, collection=collection_name))
            super().__init__(own.bind(app=APP_NAME), owns_memory=True)
        elif any(other is not None for other in (host, port, url, api_key, vector_size)):
            raise InvalidInputError("memory= has its own store and embedder; leave out the others")
        else:
            super().__init__(memory.bind(app=APP_NAME) if isinstance(memory, Memory) else memory)

    @property
    def vector_size(self) -> int | None:
        """Dimensions of the vectors; `None` if `memory` was given."""
        return None if self.embedding_model is None else self.embedding_model.vector_size

    def process_session(self, session: Session) -> None:
        """Store the messages of a session; may be called repeatedly."""
        run_sync(self.add_session_to_memory, session)

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
        app_name: str = APP_NAME,
        memories: Sequence[MemoryEntry] = (),
        custom_metadata: Mapping[str, object] | None = None,
    ) -> str | Coroutine[Any, Any, None]:
        """Store one memory of a user and return its id; or, if awaited, act as ADK's `add_memory`.

        What is known already is not stored again: the id is then that of the memory that says the same. The two methods
        share a name; calls without `text` are ADK's.

        Args:
            text: The text to remember.
            user_id: The owner.
            memory_type: The kind; any word.
            metadata: Returned with the memory; `tags`, a list, can be used in searches.
            app_name: ADK's, as the following ones.
            memories: See `MemoryService.add_memory`.
            custom_metadata: See `MemoryService.add_memory`.
        """
        if text is None:
            return super().add_memory(
                app_name=app_name, user_id=user_id, memories=memories, custom_metadata=custom_metadata
            )
        return self.store_once(text, user_id, memory_type, metadata or {}).record.id

    def store_once(
        self, text: str, user_id: str, memory_type: str, metadata: Mapping[str, object]
    ) -> operations.Stored:
        """Act as `add_memory`, and say whether the memory was there before."""
        draft = Draft(text, kind=memory_type, tags=tags_of(metadata), data=description(metadata))
        return run_sync(operations.store, self.handle(APP_NAME, user_id), draft)

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
            limit: At most this many, 1 to 5,000.
            from_time: Only memories since this time; without a time zone it is local time.
            memory_type: Only memories of this type, as texts of this type; `"all"` for memories of every type.
        """
        memory, since = self.handle(APP_NAME, user_id), from_time and from_time.astimezone(UTC)
        return run_sync(self.access.run, lambda: search(memory, query, limit, memory_type, since))

    def clear_user_memory(self, user_id: str) -> int:
        """Delete all memories of a user permanently. Returns the number of deleted memories."""
        return run_sync(lambda: self.clear_user(app_name=APP_NAME, user_id=user_id))
