"""The messages of one conversation, stored in the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import RemoveMessage

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Where, run_sync
from memory_core.adapting import (
    ANY_STATE,
    MESSAGE_KIND,
    Deadline,
    every_record,
    identity_by_words,
    known,
    known_messages,
    limits,
    message_key,
    new_id,
    on_core,
    remember_drafts,
    when_embedded,
)
from memory_langchain.messages import role_of, searchable_text, to_draft, to_message
from memory_langchain.scope import CallScope, ScopeResolver

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

REMOVE_ALL_MESSAGES: Final = "__remove_all__"
"""The id with which LangGraph's `RemoveMessage` removes everything (`langgraph.graph.message`, which need not be
installed)."""
FRAMEWORK: Final = "langchain"
"""Name of which the keys of messages are made, also of those in LangGraph's threads."""


class MemoryChatMessageHistory(BaseChatMessageHistory):
    """The history of one conversation. Messages of every type come back unchanged, in the order they were added.

    For `RunnableWithMessageHistory`, `ConversationBufferMemory` and your own code. For chains, `with_memory` is the
    better choice, because it also recalls memories.

    ```python
    history = MemoryChatMessageHistory(memory, user_id="ann", session_id="monday")
    history.add_user_message("I drink jasmine tea")
    ```

    Of a message of more than 4,000,000 bytes as JSON, the largest parts are cut, with a mark. A block of content that
    was cut, such as an image, comes back as a text that says what it was.

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
        timeout: The number of seconds that a call may take. Then it raises `StoreUnavailableError`, and what it was to
            add or to remove still may be; messages with ids can be added again.

    Raises:
        ScopeError: The user or the session is missing or empty, or contradicts the handle.
    """

    def __init__(
        self,
        memory: BoundMemory | Memory,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        timeout: float = limits.EXPLICIT_SECONDS,
    ) -> None:
        super().__init__()
        self._deadline = Deadline(timeout, "a conversation")
        given = {"user_id": user_id, "session_id": session_id}
        named: RunnableConfig = {"configurable": {name: key for name, key in given.items() if key is not None}}
        self._scope = ScopeResolver(memory).resolve(named, needs_session=True)

    @property
    def scope(self) -> CallScope:
        """The scope of the conversation."""
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


async def read(scope: CallScope) -> list[MemoryRecord]:
    """The turns of a conversation, oldest first."""
    return await every_record(scope.memory, _turns(scope))


async def read_window(scope: CallScope, last: int) -> list[MemoryRecord]:
    """The newest turns of a conversation, oldest first, at most `last`.

    If older ones are left out, the window begins with a question: providers refuse a tool's result without its call,
    and an answer without its question misleads the model.
    """
    page = await scope.memory.list(where=_turns(scope), order="newest", limit=last + 1)
    records = page.records[::-1]
    if len(records) <= last:
        return list(records)
    return list(dropwhile(lambda record: record.role in {"assistant", "tool"}, records[1:]))


def _turns(scope: CallScope) -> Where:
    """The condition of the turns; `maintain` compacts those that a summary covers."""
    return Where(session=scope.session, kinds=(MESSAGE_KIND,), states=("active", "compacted"))


async def write(scope: CallScope, messages: Sequence[BaseMessage]) -> None:
    """Append messages in one transaction; a message with a known id replaces the stored one. Removals come first."""
    added, removed = _without_removed(messages)
    keys = [key_of(scope, identity or new_id()) for identity in _ids(added)]
    await _replace(scope, removed, added, keys)


async def write_turn(
    scope: CallScope, asked: Sequence[BaseMessage], answers: Sequence[BaseMessage], *, is_resent: bool
) -> None:
    """Append a question and its answers in one transaction. Removals among the questions come first.

    Args:
        scope: Its `session` is the conversation.
        asked: The question of the chain; a message with a known id and another text is an edit.
        answers: Its answers now, also if an answer has the id of an earlier one, as those of a cache have.
        is_resent: True if a client sends its whole conversation, so that its messages may be known.
    """
    asked, removed = _without_removed(asked)
    keys = [*_keys(scope, _ids(asked)), *await unused_keys(scope, _ids(answers))]
    await _replace(scope, removed, [*asked, *answers], keys, ids_may_differ=is_resent)


async def _replace(
    scope: CallScope,
    removed: Collection[str],
    added: Sequence[BaseMessage],
    keys: Sequence[str],
    *,
    ids_may_differ: bool = False,
) -> None:
    drafts = [to_draft(message, scope, source_key=key) for message, key in zip(added, keys, strict=True)]
    await _remove(scope, removed)
    now, embed = scope.memory.now(), when_embedded(drafts)
    await remember_drafts(scope.memory, drafts, now=now, embed=embed, ids_may_differ=ids_may_differ)


def _keys(scope: CallScope, identities: Sequence[str | None], taken: Collection[str] = ()) -> list[str]:
    """The source keys of messages; those with the same id are told apart by their order, and none is a taken one."""
    seen = Counter[str]()
    keys: list[str] = []
    for identity in (given or new_id() for given in identities):
        seen[identity] += 1
        while (key := _nth_key(scope, identity, seen[identity])) in taken:
            seen[identity] += 1
        keys.append(key)
    return keys


async def unused_keys(scope: CallScope, identities: Sequence[str | None]) -> list[str]:
    """The source keys of messages that are said now, also if messages with their ids were said before."""
    named = [identity or new_id() for identity in identities]
    asked, taken = set[str](), set[str]()
    while fresh := [key for key in _keys(scope, named, taken) if key not in asked]:
        taken |= {one.key for one in await known(scope.memory.bind(session=scope.session), fresh)}
        asked |= set(fresh)
    return _keys(scope, named, taken)


def _ids(messages: Sequence[BaseMessage]) -> list[str | None]:
    return [getattr(message, "id", None) for message in messages]  # what is no message is refused by name later


def key_of(scope: CallScope, *identity: str) -> str:
    """The source key of a message by its id in the conversation."""
    return message_key(scope.memory.scope, FRAMEWORK, scope.session or "", *identity)


def draft_of(message: BaseMessage, scope: CallScope) -> Draft:
    """The draft of a message under the key of its id, or under none."""
    return to_draft(message, scope, source_key=None if message.id is None else key_of(scope, message.id))


def _nth_key(scope: CallScope, identity: str, nth: int) -> str:
    """The key of the first, the second… message with the same id."""
    return key_of(scope, identity) if nth == 1 else key_of(scope, identity, str(nth))


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


async def _remove(scope: CallScope, ids: Collection[str]) -> None:
    """Delete the messages with these ids from a conversation. They may be added again."""
    if REMOVE_ALL_MESSAGES in ids:
        await clear(scope)
    elif ids:
        keys = [key_of(scope, identity) for identity in ids]
        await scope.memory.delete_where(replace(ANY_STATE, session=scope.session, source_keys=keys), forget=False)


async def clear(scope: CallScope) -> None:
    """Delete the turns of a conversation and their summaries."""
    everything = replace(ANY_STATE, session=scope.session)
    summaries = await every_record(scope.memory, replace(everything, kinds=("summary",)))
    ids = [record.id for record in summaries if _is_summary(record)]
    for where in (replace(ANY_STATE, ids=ids), replace(everything, kinds=(MESSAGE_KIND,))):
        await scope.memory.delete_where(where, forget=False)


def _is_summary(record: MemoryRecord) -> bool:
    """True if a record summarises messages, as `maintain` does; tools may store others of this kind."""
    return any(link.relation == "summarizes" for link in record.links)


def first_sent_again(records: Sequence[MemoryRecord], messages: Sequence[BaseMessage]) -> int:
    """Index of the first record that the client resends with the conversation; `len(records)` if it resends none."""
    texts = ((role_of(message), searchable_text(message)) for message in messages)
    given = [identity_by_words(role, text) for role, text in texts if text]
    stored = [identity_by_words(record.role, record.text) for record in records]
    return min(known_messages(given, stored, is_complete=True).values(), default=len(records))
