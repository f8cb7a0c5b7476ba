"""The messages of one conversation, kept in the memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Role, Where, run_sync
from memory_core.adapting import append_drafts, continue_drafts, known_messages, on_core, said
from memory_langchain.messages import (
    MESSAGE_KIND,
    SUMMARY_DATA,
    SUMMARY_KIND,
    key_of_message,
    message_id,
    role_of,
    searchable_text,
    to_draft,
    to_message,
)
from memory_langchain.scope import CallScope, ScopeResolver

try:
    from langchain_core.chat_history import BaseChatMessageHistory
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_PAGE: Final = 1_000
_SHORT_PAGE: Final = 64
"""Where only what came lately is wanted."""
_LONG_CHARS: Final = 20_000
"""What is longer is found by its words at once and by its meaning a little later: no turn waits seconds for vectors."""
_MOST: Final = 10_000
"""Most records of one page."""
_OTHER_WRITERS: Final = 20
"""How many turns others may have added to a conversation while one turn of an agent runs."""


class MemoryChatMessageHistory(BaseChatMessageHistory):
    """The history of one conversation: every kind of message comes back as it was, in the order it was added.

    For `RunnableWithMessageHistory`, `ConversationBufferMemory` and code of your own; chains are better off with
    `with_memory`, which also recalls.

    ```python
    history = MemoryChatMessageHistory(memory, user_id="ann", session_id="monday")
    history.add_user_message("I drink jasmine tea")
    ```

    Adding is all or nothing. A message with an id is added once: adding the id again changes nothing, or replaces
    the message if it differs. Messages without an id are always added, equal ones too, and come back without one.

    What `clear` removed may be added again, under the same ids too. A message that was deleted by itself, by a tool
    that forgets or by another framework, stays forgotten: its id is skipped from then on.

    Args:
        memory: A handle on the user's memories, or a memory together with `user_id`.
        session_id: The conversation.
        user_id: The user; a handle that is bound to one accepts only the same.
        agent_id: The agent that takes part, as the author of what models say.

    Raises:
        ScopeError: User or session is missing or empty, or contradicts the handle.
    """

    def __init__(
        self,
        memory: BoundMemory | Memory,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        super().__init__()
        self._scope = ScopeResolver(memory, user_id, session_id, agent_id).resolve(needs_session=True)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # a property, as the base class documents
        """All messages, oldest first; a new list at every access."""
        return [to_message(record) for record in run_sync(read, self._scope)]

    async def aget_messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        return [to_message(record) for record in await read(self._scope)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages in order: all of them or, on an error, none.

        Raises:
            TypeError: One of them is not a message that could be read again.
            MemoryCoreError: The memory could not be written.
        """
        run_sync(write, self._scope, list(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """As `add_messages`."""
        await on_core(write, self._scope, list(messages))

    def clear(self) -> None:
        """Delete the messages of this conversation and summaries of them; what tools stored during it stays."""
        run_sync(clear, self._scope)

    async def aclear(self) -> None:
        """As `clear`."""
        await on_core(clear, self._scope)


async def read(scope: CallScope, last: int | None = None, *, after: str | None = None) -> list[MemoryRecord]:
    """The turns of a conversation, oldest first.

    Args:
        scope: Its `session` is the conversation.
        last: Only this many, the newest; `None` reads all.
        after: Only those behind the record of this id.
    """
    records: list[MemoryRecord] = []
    cursor: str | None = None
    size = _PAGE if after is None else _SHORT_PAGE
    while last is None or len(records) < last:
        limit = size if last is None else min(last - len(records), size)
        page = await scope.memory.list(where=_turns(scope), order="newest", limit=limit, cursor=cursor)
        newer = list(takewhile(lambda record: record.id != after, page.records))
        records.extend(newer)
        cursor = page.cursor
        if cursor is None or len(newer) < len(page.records):
            break
    records.reverse()
    return records


async def write(scope: CallScope, messages: Sequence[BaseMessage]) -> None:
    """Append messages in one transaction; those whose id is known replace what is stored."""
    drafts = [_draft(message, scope) for message in messages]
    await append_drafts(scope.memory, drafts, embed=_when(drafts))


async def clear(scope: CallScope) -> None:
    """Delete the turns of a conversation and the summaries of them."""
    told = Where(session=scope.session, kinds=(SUMMARY_KIND,), data=SUMMARY_DATA, states=("active", "archived"))
    for where in (told, _turns(scope)):
        await scope.memory.delete_where(where, forget=False)


async def capture(scope: CallScope, messages: Sequence[BaseMessage], *, thread: Sequence[BaseMessage]) -> None:
    """Append those messages that the conversation does not hold yet and that nobody deleted from it.

    Unlike `write`, for messages that come by again and again (the thread of an agent): what was changed or deleted
    through any framework stays as it is. A thread that a client sends again without ids has others every time; its
    messages are known by where they stand in it, so one that holds a single message is new.

    Args:
        messages: What to append, all of it of the thread.
        thread: All that the conversation shows now, in order.
    """
    limit = min(2 * len(thread) + _OTHER_WRITERS, _MOST)
    page = await scope.memory.list(where=_turns(scope), order="newest", limit=limit)
    records = page.records[::-1]
    ids = {message_id(record) for record in records} & {message.id for message in thread} - {None}
    stored = [_recognised(record.role, record.text, message_id(record), ids) for record in records]
    shown = [message for message in thread if searchable_text(message).strip()]
    given = [_recognised(role_of(message), searchable_text(message), message.id, ids) for message in shown]
    known = known_messages(given, stored, is_complete=page.cursor is None) if len(given) > 1 else {}
    by_place = {id(shown[place]) for place in known if place < _answers_from(shown, ids)}
    fresh = [message for message in messages if not (message.id in ids or id(message) in by_place)]
    if fresh:
        start = next(place for place, message in enumerate(thread) if message is fresh[0])
        earlier = {id(message) for message in thread[:start]}
        before = [records[at] for place, at in sorted(known.items()) if id(shown[place]) in earlier]
        after = before[-1] if before else next(iter(page.records), None)
        drafts = [to_draft(message, scope, source_key=None) for message in fresh]
        await continue_drafts(scope.memory, drafts, after=after, embed=_when(drafts))


def first_sent_again(records: Sequence[MemoryRecord], messages: Sequence[BaseMessage]) -> int:
    """From which of the last records of a conversation on a client sends it again; their number, if it does not."""
    given = [said(role_of(message), searchable_text(message)) for message in messages if searchable_text(message)]
    stored = [said(record.role, record.text) for record in records]
    return min(known_messages(given, stored, is_complete=True).values(), default=len(records))


def _answers_from(shown: Sequence[BaseMessage], ids: Collection[str | None]) -> int:
    """Where the answers begin that no other run gave: behind a last question that is stored under its own id.

    Others may have got the same answer in this conversation meanwhile. A question that was recognised by its text was
    asked before, and so its answer may be stored too.
    """
    question = next((place for place in reversed(range(len(shown))) if role_of(shown[place]) == "user"), None)
    return len(shown) if question is None or shown[question].id not in ids else question + 1


def _recognised(role: Role | None, text: str, identity: str | None, ids: Collection[str | None]) -> tuple[str, ...]:
    """What a message is recognised by: its id where both sides have it, else what it says."""
    return ("id", str(identity)) if identity in ids else said(role, text)


def _when(drafts: Sequence[Draft]) -> Literal["now", "later"]:
    """When the vectors of messages are computed."""
    return "later" if sum(len(draft.text) for draft in drafts) > _LONG_CHARS else "now"


def _draft(message: BaseMessage, scope: CallScope) -> Draft:
    identity = getattr(message, "id", None)
    key = None if identity is None else key_of_message(scope.session or "", identity)
    return to_draft(message, scope, source_key=key)


def _turns(scope: CallScope) -> Where:
    return Where(session=scope.session, kinds=(MESSAGE_KIND,))
