"""A conversation, as its adapter tells it in facts, and what is recalled for its next turn.

Every framework keeps a record of its conversations, and its adapter asks that record; the memory infers nothing from
what is absent, from names or from texts. What holds for every adapter:

- What was said is kept under a key, made of the framework's id of the message in its session. Saying it again changes
  nothing.
- Only `leave` hides a message, and `resume` shows it again; only `delete` takes it out.
- Messages without an id, of a client that resends a plain list, are aligned with what is stored
  (`docs/decisions/0005-messages-without-ids.md`). None of them is ever left.
- Writes of one conversation happen in order. What a store could not do is done with the next write of this owner; only
  the end of the process loses it.

What stands where in this room:

- `branches.py`: what is left, resumed and edited.
- `recalling.py`: the block of a turn; `before_prompt.py` and `shown.py`: that of a client that knows only its prompt.
- `deadline.py`, `access.py`, `writes.py`: how long a turn waits, for a call, for a store that does not answer, and for
  what is stored in the background (`write.py`); `limits.py` has the times.
- `messages/`: what was said, below the handles, which remember it too. A framework's message becomes a draft
  (`message_to_draft.py`), without our own words (`own_words.py`), with the names of its files (`sent_files.py`).
  `remember.py` stores each once, by its key (`known_messages.py`) or, without an id, by its place (`alignment.py`).
  `triggers.py` finds what asks to be remembered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NoReturn, Self
from weakref import WeakKeyDictionary, ref

from memory_core.concurrency.foreign import NoAnswerError
from memory_core.concurrency.loop import off_loop, on_core
from memory_core.conversation import branches, limits
from memory_core.conversation.access import Access
from memory_core.conversation.deadline import Deadline, NotStoredError
from memory_core.conversation.messages.known_messages import message_key
from memory_core.conversation.messages.remember import remember_drafts
from memory_core.conversation.recalling import block_of_turn, condition_of_shown, ids_of_shown, one_of
from memory_core.conversation.write import Shown, Step, Write
from memory_core.conversation.writes import Writes
from memory_core.errors import (
    ClosedError,
    EmbeddingError,
    FingerprintError,
    InvalidInputError,
    QuotaExceededError,
    StorageError,
    StoreUnavailableError,
    reason_for_log,
)
from memory_core.handle import BoundMemory, known
from memory_core.models import Draft, Known, MemoryRecord
from memory_core.open_store import OpenStore
from memory_core.recall.asked import Asked
from memory_core.recall.values import PUSHED, RecallOptions
from memory_core.records.draft_to_record import complete_all, is_long_batch
from memory_core.values.frame import without_blocks
from memory_core.values.limits import MAX_LISTED
from memory_core.values.printable import one_line
from memory_core.values.shortening import shortened_data, shortened_text
from memory_core.where.where import ANY_STATE, Where

logger = logging.getLogger(__name__)

OF_THE_APPLICATION: Final = (ClosedError, FingerprintError, InvalidInputError)
"""Errors that are raised to the caller of a turn, such as an owner that is not named: the next turn would fail as well.
Every other error costs a turn its memory, and is logged."""
_NOBODY: Final = Where(data={"memory_core": "test"})
"""Conditions that no record satisfies."""
_LONG_CHARS: Final = 20_000
"""Vectors of longer messages are computed in the background, so that no turn waits seconds for them. Until then, only
their words find these messages."""


@dataclass(frozen=True, slots=True)
class Visible:
    """The part of its conversation that a prompt shows."""

    keys: Sequence[str] = ()
    """Of the messages with an id, in order; see `Conversation.key`."""
    texts: Sequence[str] = ()
    """Of the messages without an id."""
    before: Sequence[str] = ()
    """The words of the person before the question, oldest first; the question may be among them."""


class Conversations:
    """The conversations of one adapter: what they wait for, and what waits to be stored of them.

    Args:
        framework: Its name, of which the keys of messages are made.
        who: The owner of the memory, for the log.
        seconds: The longest time that a turn waits for its memory, opening it and loading its model not counted.
        options: The options of the recall of a turn; a `limit` of 0 recalls nothing.
        embed: The time at which the vectors of messages are computed; by default now, unless they are long.

    Raises:
        InvalidInputError: `seconds` is not above 0 (also a `ValueError`).
    """

    def __init__(
        self,
        framework: str,
        who: str,
        *,
        seconds: float = limits.CALL_SECONDS,
        options: RecallOptions = PUSHED,
        embed: Literal["now", "later"] | None = None,
    ) -> None:
        self.framework = framework
        self.embed: Final = embed
        self.options = options
        self.deadline = Deadline(seconds, who)
        self.writes = Writes()
        self._accesses: WeakKeyDictionary[OpenStore, Access] = WeakKeyDictionary()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same: copies of an adapter share the memory, and what waits for it."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("what uses an open memory cannot be pickled; open it again where it is needed: Memory(path)")

    def of(self, memory: BoundMemory, session: str) -> Conversation:
        """The conversation of one owner in one session; two of these are the same.

        Args:
            memory: Bound to the owner. Its spaces are recalled too; what is said goes into the owner's own memory.
            session: The framework's name of the conversation; empty for messages of none, which nobody can leave.
        """
        return Conversation(self, memory, session)

    def access(self, memory: BoundMemory) -> Access:
        """Access to the store of a memory, which is left alone while it does not answer."""
        if (known_access := self._accesses.get(memory.memory)) is not None:
            return known_access
        home, scope = ref(memory.memory), memory.scope

        async def answers() -> None:
            if (store := home()) is not None:
                await BoundMemory(store, scope).search("Is anybody there?", where=_NOBODY, limit=1)

        return self._accesses.setdefault(memory.memory, Access(answers, self.deadline.seconds))

    async def close(self, seconds: float = limits.CLOSE_SECONDS) -> None:
        """Wait for all writes, but not longer than this; they go on after that. What failed is tried once more."""
        if not await self.writes.close(seconds):
            logger.warning("conversations are still being stored after %g seconds", seconds)


class Conversation:
    """The messages that one owner says and hears in one session; see the module."""

    def __init__(self, shared: Conversations, memory: BoundMemory, session: str) -> None:
        self._shared = shared
        self._memory = memory
        self._own = memory.own
        self._session = session
        scope = replace(self._own.scope, session=None)
        self._name = (id(memory.memory), scope, session)
        self._lost: list[Exception] = []
        """Errors of what could not be stored and would fail again; they are logged."""

    def key(self, *identity: str) -> str:
        """The key of a message: what its framework tells it apart by from all others of the session, such as its id."""
        return message_key(self._own.scope, self._shared.framework, self._session, *identity)

    async def recall(self, question: str, visible: Visible = Visible()) -> str:
        """The block that is shown to a model before its turn: the profile, and what is relevant to the question.

        A memory that fails or is late costs the turn its block, which is logged once.

        Args:
            question: The words of the person, or the words of a tool; blank for nothing to recall.
            visible: The part of this conversation that the prompt shows: it is not recalled, and says what a short
                question is about.

        Raises:
            ClosedError, FingerprintError, InvalidInputError: The application has to act.
        """
        if self._shared.options.limit == 0 or not question.strip():
            return ""
        try:
            return await on_core(self._shared.access(self._memory).run, lambda: self._block(question, visible))
        except OF_THE_APPLICATION:
            raise
        except (StorageError, EmbeddingError):  # `Access` has logged it
            return ""
        except Exception as error:  # noqa: BLE001  (a store or a function of the options may raise anything)
            logger.error("a turn goes on without its memory: %s", reason_for_log(error))  # noqa: TRY400  (may quote)
            return ""

    async def remember(
        self,
        messages: Iterable[Draft],
        *,
        context: Sequence[Draft] = (),
        ids_may_differ: bool = False,
        are_shown: bool = False,
    ) -> None:
        """Keep what was said, in order.

        A message whose key is known stays as it is. Text and data that are too large for a record are shortened.

        Args:
            messages: A message with an id has the key of it (`key`) as its source key.
            context: The messages before them, of a client that resends its conversation. They are not stored, and tell
                which of the others are known.
            ids_may_differ: True if a known message may come under another id, if a client makes new ids each time.
            are_shown: True if the record shows them, so that those that were left are resumed.

        Raises:
            InvalidInputError: A message cannot be stored; nothing of the call is.
        """
        given = [*context, *messages]
        drafts = await off_loop(is_long_batch(given), self._storable, given)
        if len(drafts) == len(context):
            return
        if are_shown and not context and not ids_may_differ:
            await self._put(Shown(self._show, tuple(drafts)))
            return
        options = {"ids_may_differ": ids_may_differ, "are_shown": are_shown}
        await self._put(partial(self._done, partial(self._store, drafts, context=len(context), **options)))

    async def edit(self, key: str, text: str) -> None:
        """The record says that a person has given a message another text. What was derived of the old one is left."""
        edit = partial(branches.edit, self._own, self._session, key, shortened_text(text))
        await self._put(partial(self._done, edit))

    async def leave(self, keys: Iterable[str]) -> None:
        """The record says that a person has left these messages, with another branch or by removing them.

        Every read skips them, and `resume` brings them back.
        """
        await self._put_keys(branches.leave, keys)

    async def resume(self, keys: Iterable[str]) -> None:
        """The record says that these messages are shown again; those that were not left stay as they are."""
        await self._put_keys(branches.resume, keys)

    async def delete(self, keys: Iterable[str]) -> None:
        """The framework's own call deletes these messages for good. They may be said again."""
        await self._put_keys(_delete, keys)

    async def known(self, keys: Sequence[str] | None = None) -> list[Known]:
        """The stored messages of the conversation under keys, in order and in every state.

        Args:
            keys: Only these, at most 10,000.
        """
        return await known(self._own.bind(session=self._session), keys)

    async def settled(self, seconds: float | None = None) -> None:
        """Return when everything that was said of this conversation is durable.

        Args:
            seconds: The time to wait; by default as long as for any call.

        Raises:
            StoreUnavailableError: It is not yet. It is stored as soon as the memory answers.
            NotStoredError: Something would fail again, so that it is not tried again. Its error is the cause.
            MemoryCoreError: The store has failed in this way. It is tried again with the next turn of this owner.
        """
        writes = self._shared.writes
        try:
            async with asyncio.timeout(seconds or self._shared.deadline.seconds):
                await writes.caught_up(self._name)
        except TimeoutError as error:
            writes.start_again(self._name)
            raise StoreUnavailableError("the memory did not answer in time; what was said is stored later") from error
        if self._lost:
            raise NotStoredError(f"a message of session {one_line(self._session)} is not stored") from self._lost.pop(0)
        if (problem := writes.problem(self._name)) is not None:
            raise problem

    async def _block(self, question: str, visible: Visible) -> str:
        await self._shared.writes.retry(self._is_of_owner, self._shared.deadline.seconds / 2)
        keys, texts = frozenset(visible.keys), frozenset(map(without_blocks, visible.texts))

        def shows(record: MemoryRecord) -> bool:
            is_here = record.session == self._session and self._memory.label_of(record) is None
            return is_here and (record.source_key in keys or record.text in texts)

        shown = None if texts else await condition_of_shown(self._memory, self._session, visible.keys)
        if texts:  # they have no key that a search could leave out
            many = len(visible.keys) + len(visible.texts)
            shown = one_of("id", await ids_of_shown(self._own, self._session, many, shows))
        asked = Asked(question, visible.before, shows, shown)
        found = await block_of_turn(self._memory, asked, self._shared.options)
        return found.text

    async def _store(
        self, drafts: Sequence[Draft], *, context: int = 0, ids_may_differ: bool = False, are_shown: bool = False
    ) -> None:
        now, embed = self._own.now(), self._shared.embed or when_embedded(drafts)
        records = await remember_drafts(
            self._own, drafts, now=now, embed=embed, edits=False, ids_may_differ=ids_may_differ, context=context
        )
        if are_shown:
            await branches.show(self._own, records)

    async def _show(self, drafts: Sequence[Draft]) -> None:
        await self._done(partial(self._store, drafts, are_shown=True))

    async def _done(self, step: Step) -> None:
        """Do a step; one that would fail again is given up."""
        try:
            await step()
        except (NoAnswerError, StorageError, EmbeddingError, QuotaExceededError):
            raise
        except Exception as error:  # noqa: BLE001  (a defect of one message must not lose the others that wait)
            self._lost.append(error)
            reason = reason_for_log(error)
            logger.error("a message of session %s is not stored: %s", one_line(self._session), reason)  # noqa: TRY400
        self._shared.access(self._memory).hear()

    async def _put(self, step: Step) -> None:
        self._memory.memory.finish_first(self._shared.writes)
        await self._shared.writes.put(Write(self._name, self._session, (step,)))

    async def _put_keys(
        self, change: Callable[[BoundMemory, str, Sequence[str]], Awaitable[None]], keys: Iterable[str]
    ) -> None:
        if some := list(dict.fromkeys(keys)):
            await self._put(partial(self._done, partial(change, self._own, self._session, some)))

    def _storable(self, drafts: Sequence[Draft]) -> list[Draft]:
        made = [
            replace(
                draft, text=shortened_text(draft.text), data=shortened_data(draft.data), session=self._session or None
            )
            for draft in drafts
        ]
        complete_all(made, self._own.scope, self._own.now())  # raises now, not in the background
        return made

    def _is_of_owner(self, conversation: Hashable) -> bool:
        return isinstance(conversation, tuple) and conversation[:2] == self._name[:2]


def when_embedded(drafts: Sequence[Draft]) -> Literal["now", "later"]:
    """The choice of when the vectors of messages are computed: those of many characters in the background."""
    return "later" if sum(len(draft.text) for draft in drafts) > _LONG_CHARS else "now"


async def _delete(handle: BoundMemory, session: str, keys: Sequence[str]) -> None:
    for start in range(0, len(keys), MAX_LISTED):
        some = replace(ANY_STATE, session=session, source_keys=keys[start : start + MAX_LISTED])
        await handle.delete_where(some, forget=False)
