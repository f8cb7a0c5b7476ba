"""The messages of one conversation, stored in the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Where, run_sync
from memory_core.adapting import (
    Deadline,
    Thread,
    Visible,
    append,
    every_record,
    id_in_thread,
    is_taken_back,
    keep,
    known_messages,
    limits,
    on_core,
    said,
    threaded,
)
from memory_langchain.messages import (
    MESSAGE_KIND,
    key_of_message,
    message_id,
    role_of,
    searchable_text,
    to_draft,
    to_message,
)
from memory_langchain.oversize import is_large
from memory_langchain.scope import CallScope, ScopeResolver

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import RemoveMessage
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_PAGE: Final = 1_000
"""Page size for reads that need only recent records."""
_MOST: Final = 10_000
"""Most records of one page."""
REMOVE_ALL_MESSAGES: Final = "__remove_all__"
"""The id with which LangGraph's `RemoveMessage` removes everything (`langgraph.graph.message`, which need not be
installed)."""


SENT: Final = Thread(())
"""A thread that a client sends."""


class MemoryChatMessageHistory(BaseChatMessageHistory):
    """The history of one conversation. Messages of every type come back unchanged, in the order they were added.

    For `RunnableWithMessageHistory`, `ConversationBufferMemory` and your own code. For chains, `with_memory` is the
    better choice, because it also recalls memories.

    ```python
    history = MemoryChatMessageHistory(memory, user_id="ann", session_id="monday")
    history.add_user_message("I drink jasmine tea")
    ```

    A message of more than 4,000,000 bytes as JSON comes back with placeholders for its largest images, files or
    artifacts, which say their type and size; only if its text alone is larger, the text is cut.

    Adding is all or nothing. A message with an id is added once; adding the id again replaces the message if it
    differs. Messages without an id are always added, even equal ones, and come back without an id.

    A `RemoveMessage` removes the message with its id, as in a LangGraph state, or with LangGraph's
    `REMOVE_ALL_MESSAGES` all of them; an unknown id changes nothing. Messages that it or `clear` removed may be added
    again, even with the same ids. A message that was deleted individually, by a tool or by another framework, stays
    deleted: its id is skipped from then on.

    Args:
        memory: A handle on the user's memories, or a memory together with `user_id`.
        session_id: The conversation.
        user_id: The user; must match the user of a bound handle.
        agent_id: The agent in the conversation, stored as the author of the model's messages.
        timeout: How many seconds a call may take. Then it raises `StoreUnavailableError`, and what it was to add or to
            remove still may be; messages with ids can be added again.

    Raises:
        ScopeError: The user or the session is missing or empty, or contradicts the handle.
    """

    def __init__(
        self,
        memory: BoundMemory | Memory,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        timeout: float = limits.EXPLICIT_SECONDS,
    ) -> None:
        super().__init__()
        self._deadline = Deadline(timeout, "a conversation")
        self._scope = ScopeResolver(memory, user_id, session_id, agent_id).resolve(needs_session=True)

    @property
    def scope(self) -> CallScope:
        """Whose conversation it is."""
        return self._scope

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # a property, as the base class documents
        """All messages, oldest first; a new list at every access."""
        return run_sync(self.aget_messages)

    async def aget_messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        records = await self._deadline.read("reading a conversation", lambda: read(self._scope))
        return [to_message(record) for record in records]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages in order: all of them or, on an error, none. What they remove is removed before.

        Raises:
            TypeError: One of them is not a message that can be read back.
            MemoryCoreError: The memory could not be written.
        """
        run_sync(self.aadd_messages, messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """As `add_messages`."""
        given = list(messages)
        await self._deadline.write("adding messages", lambda: on_core(write, self._scope, given))

    def clear(self) -> None:
        """Delete the messages of this conversation and their summaries; memories that tools stored during it remain."""
        run_sync(self.aclear)

    async def aclear(self) -> None:
        """As `clear`."""
        await self._deadline.write("clearing a conversation", lambda: on_core(clear, self._scope))


async def read(scope: CallScope, last: int | None = None) -> list[MemoryRecord]:
    """The turns of a conversation, oldest first.

    Args:
        scope: Its `session` is the conversation.
        last: Only this many of the newest turns; `None` reads all.
    """
    records: list[MemoryRecord] = []
    cursor: str | None = None
    while last is None or len(records) < last:
        limit = _PAGE if last is None else min(last - len(records), _PAGE)
        page = await scope.memory.list(where=_turns(scope), order="newest", limit=limit, cursor=cursor)
        records.extend(record for record in page.records if not is_taken_back(record))
        cursor = page.cursor
        if cursor is None:
            break
    records.reverse()
    return records


async def read_window(scope: CallScope, last: int | None) -> list[MemoryRecord]:
    """The newest turns of a conversation, oldest first, at most `last`.

    If older ones are left out, the window begins with a question: providers refuse a tool's result without its call,
    and an answer without its question misleads the model.
    """
    if last is None:
        return await read(scope)
    records = await read(scope, last + 1)
    return records if len(records) <= last else from_question(records[1:])


def from_question(records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """The turns without the first ones that answer what is not among them."""
    return list(dropwhile(lambda record: record.role in {"assistant", "tool"}, records))


async def write(scope: CallScope, messages: Sequence[BaseMessage]) -> None:
    """Append messages in one transaction; a message with a known id replaces the stored one. Removals come first."""
    added, removed = _without_removed(messages)
    drafts = await _drafts(added, lambda message: _draft(message, scope))
    await _remove(scope, removed)
    await append(scope.memory, scope.session or "", drafts)


def _without_removed(messages: Sequence[BaseMessage]) -> tuple[Sequence[BaseMessage], set[str]]:
    """The messages that no later `RemoveMessage` removes, and the ids of the messages to remove."""
    added: list[BaseMessage] = []
    removed = set[str]()
    for message in messages:
        if not isinstance(message, RemoveMessage):
            added.append(message)
            continue
        removed.add(str(message.id))
        added = [] if message.id == REMOVE_ALL_MESSAGES else [one for one in added if one.id != message.id]
    return added, removed


async def _remove(scope: CallScope, ids: Collection[str | None]) -> None:
    """Delete the messages with these ids from a conversation. They may be added again."""
    if REMOVE_ALL_MESSAGES in ids:
        await clear(scope)
        return
    if not ids:
        return
    turns = _turns(scope, in_any_state=True)
    found = [
        record.id
        for record in await every_record(scope.memory, turns)
        if message_id(record) in ids or id_in_thread(record) in ids
    ]
    for start in range(0, len(found), _MOST):
        await scope.memory.delete_where(replace(turns, ids=found[start : start + _MOST]), forget=False)


async def clear(scope: CallScope) -> None:
    """Delete the turns of a conversation and their summaries."""
    turns = _turns(scope, in_any_state=True)
    page = await scope.memory.list(where=replace(turns, kinds=("summary",)), limit=_MOST)
    ids = [record.id for record in page.records if _is_summary(record)]
    for where in (Where(ids=ids, states=turns.states), turns):
        await scope.memory.delete_where(where, forget=False)


def _is_summary(record: MemoryRecord) -> bool:
    """Whether a record summarises messages, as `maintain` does; tools may store others of this kind."""
    return any(link.relation == "summarizes" for link in record.links)


async def capture(
    scope: CallScope, messages: Sequence[BaseMessage], *, thread: Sequence[BaseMessage], shown: Thread = SENT
) -> list[str]:
    """Append the messages that are neither stored in the conversation nor deleted from it, and follow what a person has
    changed in the thread; returns the ids of the records of its messages that were stored before.

    Unlike `write`, this is for messages that arrive repeatedly (the thread of an agent).

    Args:
        scope: Its `session` is the conversation.
        messages: The messages to append, all of them part of the thread.
        thread: All messages that the conversation currently shows, in order.
        shown: How it is visible, without the messages.
    """
    thread, removed = _without_removed(thread)
    await _remove(scope, removed)
    visible = [Visible(role_of(message), searchable_text(message), message.id) for message in thread]
    chosen = {id(message) for message in messages}
    new = [place for place, message in enumerate(thread) if id(message) in chosen]

    async def drafts(places: Sequence[int]) -> list[Draft]:
        given = [thread[place] for place in places]
        return await _drafts(given, lambda message: to_draft(message, scope, source_key=None))

    return await keep(scope.memory, scope.session or "", replace(shown, messages=visible), new, drafts)


def first_sent_again(records: Sequence[MemoryRecord], messages: Sequence[BaseMessage]) -> int:
    """Index of the first record that the client resends with the conversation; `len(records)` if it resends none."""
    given = [said(role_of(message), searchable_text(message)) for message in messages if searchable_text(message)]
    stored = [said(record.role, record.text) for record in records]
    return min(known_messages(given, stored, is_complete=True).values(), default=len(records))


async def _drafts(messages: Sequence[BaseMessage], draft: Callable[[BaseMessage], Draft]) -> list[Draft]:
    def made() -> list[Draft]:
        return [draft(message) for message in messages]

    return await asyncio.to_thread(made) if any(map(is_large, messages)) else made()


def _draft(message: BaseMessage, scope: CallScope) -> Draft:
    identity = getattr(message, "id", None)
    key = None if identity is None else key_of_message(scope.session or "", identity)
    return threaded(to_draft(message, scope, source_key=key), identity)


def _turns(scope: CallScope, *, in_any_state: bool = False) -> Where:
    """The messages of a conversation: `maintain` compacts those that a summary covers, and archives some by policy."""
    is_shown = Where(session=scope.session, kinds=(MESSAGE_KIND,), states=("active", "compacted"))
    return replace(is_shown, states=("active", "compacted", "archived")) if in_any_state else is_shown
