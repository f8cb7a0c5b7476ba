"""ADK's memory service on one shared memory, for any `Runner`.

```python
service = MemoryService("memory.db")                                     # a separate memory for each app and user
service = MemoryService(memory.bind(app="support", user="ann"))          # one memory, shared with other frameworks
runner = Runner(app=app, session_service=InMemorySessionService(), memory_service=service)
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from typing import Self

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.session import Session

from memory_adk.convert import memory_entry
from memory_adk.entries import checked_entries, entry_draft, put
from memory_adk.kept import Kept
from memory_adk.latest import Latest
from memory_adk.others import Read
from memory_adk.recall import SEARCH, find
from memory_adk.rewind import change_of
from memory_adk.shown import in_conversation
from memory_adk.zone import zone_of
from memory_core import (
    BoundMemory,
    InvalidInputError,
    Memory,
    RecallOptions,
    RecordNotFoundError,
    ScopeError,
    Where,
)
from memory_core.adapting import (
    STATES,
    Conversations,
    Deadline,
    check_key,
    limits,
    owned_by,
)


class MemoryService(BaseMemoryService):
    """Stores ADK sessions and searches them by words and by meaning.

    The owner of a memory is `(app_name, user_id)`, as everywhere in ADK. Adding is idempotent: the same session or
    events may be added any number of times, by any process, and a known event stays as it is.

    Args:
        memory: A file (opened on first use), a `Memory`, or a bound handle that other frameworks use as well.
            A handle's app replaces ADK's app name; if it is bound to a user, only that user is served. The spaces of a
            handle are read beside the memories of every user.
        recall: Recall options of a search: limit, characters, conditions (kinds, tags, session, …), mode, least score,
            floor and so on. Options for the text of a block have no effect. By default up to 10 memories and 8,000
            characters; longer texts are cut.
        memory_of: Makes the handle that an app and a user read, if its spaces depend on them. It is asked at every
            read, and no tool has an argument for it.
        only_app: The only app that is served; a call for another one is refused. With `adk web`, several agents of a
            folder have one service.
        sessions: The session service of the runner. With it, searches without a plugin leave out what a rewind of
            another session has undone; `MemoryPlugin` and `MemoryToolset` know it.
        timeout: The number of seconds that a call may take, also one of the tools; a search does not count the opening
            of the memory and the loading of its model. Then it raises `StoreUnavailableError`; what it was to write
            still may be written, and events can be added again.
        owns_memory: True if `close` also closes a given memory; a file that the service opened is always closed.
    """

    def __init__(
        self,
        memory: str | os.PathLike[str] | Memory | BoundMemory = "memory.db",
        *,
        recall: RecallOptions | None = None,
        memory_of: Callable[[str, str], BoundMemory] | None = None,
        only_app: str | None = None,
        sessions: BaseSessionService | None = None,
        timeout: float = limits.EXPLICIT_SECONDS,
        owns_memory: bool = False,
    ) -> None:
        if isinstance(memory, str | os.PathLike):
            memory, owns_memory = Memory(memory), True
        if only_app is not None:
            check_key("app", only_app)  # rejects an invalid name now, not at every call
        self._memory: Memory | BoundMemory = memory
        self._handle = memory if isinstance(memory, BoundMemory) else memory.bind()
        self._owns = owns_memory
        self._only_app = only_app
        self._recall = recall or SEARCH
        self._memory_of = memory_of
        self._sessions = sessions
        self._read = Latest[tuple[str, str, str], float]()
        """The time at which each session that was read here was last changed."""
        self._blocked = Latest[str, None]()
        self.conversations = Conversations("adk", "an agent", seconds=timeout, embed="later")
        """The conversations through which sessions are stored."""
        somebody = self._handle if self._handle.scope.user is not None else self._handle.bind(user="nobody")
        self.access = self.conversations.access(somebody)
        """Searches through this leave a store alone that does not answer."""
        self.deadline = self.conversations.deadline
        """The deadline of all other calls."""

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same service: copies of agents and apps share the memory."""
        return self

    def handle(self, app_name: str, user_id: str) -> BoundMemory:
        """Return the handle of one user, for code that needs more than ADK's five methods.

        Raises:
            ScopeError: A name is missing or empty, or the service belongs to another user.
        """
        if self._only_app is not None and app_name != self._only_app:
            raise ScopeError(f"this service is for the app {self._only_app!r}, not for {app_name!r}")
        if isinstance(self._memory, BoundMemory):
            return owned_by(self._memory, user_id)
        return owned_by(self._memory.bind(app=app_name), user_id)

    async def reached(self, app_name: str, user_id: str, deadline: Deadline | None = None) -> BoundMemory:
        """Return what one user reads now: the handle of their memory, with its spaces.

        Raises:
            ScopeError: As for `handle`, or `memory_of=` made a handle of another owner.
            LateError: `memory_of=` took longer than the deadline, by default that of the service.
        """
        own, memory_of = self.handle(app_name, user_id), self._memory_of
        if memory_of is None:
            return own
        made = await (deadline or self.deadline).ask("choosing a memory", lambda: memory_of(app_name, user_id))
        made = owned_by(made, own.scope.user)
        if (made.memory, made.scope.app) != (own.memory, own.scope.app):
            raise ScopeError(f"memory_of= made a handle for {made.scope}, but the owner is {own.scope}")
        return made

    @property
    def blocked(self) -> AbstractSet[str]:
        """The ids of invocations that a guardrail answered in this process: they are never stored."""
        return self._blocked.keys()

    def block(self, invocation_id: str) -> None:
        """Never store what is said in an invocation."""
        self._blocked.note(invocation_id, None)

    async def add_session_to_memory(self, session: Session) -> None:
        """Follow a session: what is live in it is remembered, and what a rewind has undone is left.

        It may be called repeatedly: only new events are added, and events missing from the session stay as they are.
        """
        kept = self.kept(session.app_name, session.user_id, session.id, zone_of(session.state))
        await self._keep(kept, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember the messages of some events. A known event stays as it is.

        Args:
            app_name: Owner.
            user_id: Owner.
            events: In order; any part of a session.
            session_id: The session they belong to.
            custom_metadata: Returned with each memory, except `ttl` (seconds, or `"3600s"`), `expire_time` (RFC 3339)
                and options for Vertex. `metadata`, a mapping, is merged into it.

        Raises:
            MemoryCoreError: The owner or the metadata is invalid, and nothing was added; or the store failed. Then it
                is tried again with what the session says next.
        """
        await self._keep(self.kept(app_name, user_id, session_id), events, custom_metadata or {})

    async def _keep(self, kept: Kept, events: Sequence[Event], metadata: Mapping[str, object] = {}) -> None:
        await kept.follow(change_of(events, kept.session, self.blocked), metadata)
        await kept.conversation.settled()

    def kept(self, app_name: str, user_id: str, session_id: str | None, zone: tzinfo | None = None) -> Kept:
        """Return a session as it is kept; `zone` says where its person is, if the session tells it."""
        handle = self.handle(app_name, user_id).own.bind(zone=zone)
        session = session_id if session_id and session_id.strip() else ""
        return Kept(handle, session, self.conversations.of(handle, session))

    def reader(self, context: InvocationContext) -> Read:
        """Reads the sessions of the user of a run."""
        return partial(self.read, context.session_service, context.session.app_name, context.session.user_id)

    async def read(self, sessions: BaseSessionService, app_name: str, user_id: str, session_id: str) -> bool:
        """Leave what a rewind has undone in a session, and resume what is live in it again; store nothing.

        What is undone and not stored may still be waiting to be written: then the session is read again next time. A
        session that is deleted, or never was one of ADK's, changes nothing.

        Returns:
            True if the session had changed since it was last read.
        """
        get = partial(sessions.get_session, app_name=app_name, user_id=user_id, session_id=session_id)
        name = app_name, user_id, session_id
        brief = await get(config=GetSessionConfig(num_recent_events=0))
        if brief is None or self._read.get(name) == brief.last_update_time or (session := await get()) is None:
            return False
        change = change_of(session.events, session_id, self.blocked)
        if await self.kept(app_name, user_id, session_id).take_back(change):
            self._read.note(name, session.last_update_time)
        return True

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember explicit memories. An entry with a known id replaces that memory's text and metadata.

        Args:
            app_name: Owner.
            user_id: Owner.
            memories: At least one entry, each with text parts only.
            custom_metadata: For all entries; an entry's own metadata overrides it. Besides `ttl`, `expire_time` and
                `metadata`: `memory_id` (overrides the entry's id), `memory_type` (the kind, `fact` by default),
                `tags` and `topics`.

        Raises:
            TypeError: `memories` is not a sequence of `MemoryEntry`.
            InvalidInputError: An entry or the metadata is invalid (also a `ValueError`); nothing was added.
            StorageError: The store failed.
        """
        handle = self.handle(app_name, user_id).own
        metadata, now = custom_metadata or {}, handle.memory.clock()
        drafts = [entry_draft(entry, metadata, now) for entry in checked_entries(memories)]
        await self.deadline.write("adding memories", lambda: put(handle, drafts))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Find memories by words and meaning, best first.

        If nothing is relevant, the response is empty; an unreadable store raises, so the two are never confused. After
        a failure, searches raise at once until the store has answered in the background.

        Args:
            app_name: Owner.
            user_id: Owner.
            query: A question or some words.

        Raises:
            MemoryCoreError: The owner is invalid, or the store failed.
        """
        memory = await self.reached(app_name, user_id)
        shown = in_conversation.get()
        if shown.read is None and self._sessions is not None:
            shown = replace(shown, read=partial(self.read, self._sessions, app_name, user_id))
        found = await self.access.run(lambda: find(memory, query, self._recall, shown))
        entries = [memory_entry(hit, text, memory.label_of(hit.record)) for hit, text in found]
        return SearchMemoryResponse(memories=entries)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete one memory permanently: adding its event again does not restore it.

        Args:
            app_name: Owner.
            user_id: Owner.
            memory_id: `MemoryEntry.id`. An unknown id, or `None`, deletes nothing.

        Raises:
            ScopeError: The memory is in a space that is shared for reading only.
        """
        if memory_id is None or not memory_id.strip():
            self.handle(app_name, user_id)
            return
        memory = await self.reached(app_name, user_id)

        async def delete() -> None:
            with suppress(RecordNotFoundError):
                await memory.delete(memory_id)

        await self.deadline.write("deleting a memory", delete)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> int:
        """Delete all memories of a session permanently. Returns the number of deleted memories.

        Raises:
            InvalidInputError: The session id is empty.
        """
        if not session_id:
            raise InvalidInputError(
                f"session_id must not be empty (got {session_id!r}); clear_user forgets all sessions"
            )
        return await self._delete(self.handle(app_name, user_id), Where(session=session_id, states=STATES, left=None))

    async def clear_user(self, *, app_name: str, user_id: str) -> int:
        """Delete all memories of a user permanently. Returns the number of deleted memories."""
        return await self._delete(self.handle(app_name, user_id), Where(states=STATES, left=None))

    async def _delete(self, handle: BoundMemory, where: Where) -> int:
        return (await self.deadline.write("deleting memories", lambda: handle.delete_where(where))).records

    async def close(self) -> None:
        """Close the memory if the service owns it (see `owns_memory`)."""
        if self._owns:
            self.access.close()
            await self._handle.memory.close()


def check_service(service: object) -> None:
    """Raise `TypeError` for what is neither a service nor `None`, such as a path."""
    if service is not None and not isinstance(service, MemoryService):
        raise TypeError(f"service must be a MemoryService, not {service!r:.80}; MemoryService takes a path")
