"""Remember conversations, and recall memories for a prompt: the first operations an application needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol, runtime_checkable

from memory_core.capture.message_to_draft import Message, message_drafts, read_messages
from memory_core.capture.remember import DEFAULT_SESSION, Storing, remember_drafts
from memory_core.draft_to_record import check_data
from memory_core.models import Json, MemoryRecord, Mode, Relation, Role, utc_now
from memory_core.protocols import Home, Searching
from memory_core.recall.recalling import recall_for
from memory_core.recall.values import DEFAULT_CHARS, Recalled, RecallOptions, shows_nothing_yet
from memory_core.where.value import Where

EVERYTHING = Where()


class _Handle(Searching, Storing, Protocol):
    """The handle that these operations are a part of."""

    @property
    def memory(self) -> Home: ...


@runtime_checkable
class _WithClock(Protocol):
    """A handle of a memory, which has its own clock."""

    @property
    def memory(self) -> Home: ...


@runtime_checkable
class _WithSpaces(Protocol):
    """A handle that reads several owners."""

    def label_of(self, record: MemoryRecord) -> str | None: ...


class Conversing:
    """The operations of a handle on messages and prompts; its other operations are on records."""

    async def remember(
        self: _Handle,
        messages: Iterable[Message | tuple[str, str] | Mapping[str, object]],
        *,
        session: str | None = None,
        data: Mapping[str, Json] | None = None,
        embed: Literal["now", "later"] = "now",
    ) -> list[MemoryRecord]:
        """Remember a conversation: store every message once, however often and in whatever parts it is passed.

        A message with an id is recognised by its id. Messages without ids are aligned with the last messages of the
        session: those that match them in order are known, those that follow are new. So a client may resend the whole
        conversation, its last messages, or a request, also from two processes at once. Times, if given, distinguish
        messages as well.

        Instructions to the model (`system`) and messages without text are left out.

        Args:
            messages: In order, of one conversation: `Message` values, pairs such as `("user", "I like tea")`, or
                mappings with `role` and `content` as chat APIs pass them.
            session: The session of the conversation; by default the one the handle is bound to, otherwise one session
                for all calls.
            data: Added to every record.
            embed: `"later"` returns before vectors are computed; keyword search finds the messages at once.

        Returns:
            The record of every message, in order, known ones included; without messages that were left out, or deleted
            on purpose before.

        Raises:
            InvalidInputError: An item is not a message or cannot be stored; then nothing is stored.
        """
        drafts = message_drafts(
            read_messages(messages),
            session=session or self.scope.session or DEFAULT_SESSION,
            data=check_data({} if data is None else data),
        )
        return await remember_drafts(self, drafts, now=self.memory.clock(), embed=embed)

    async def recall(  # noqa: PLR0913  (one optional keyword per option)
        self: Searching,
        query: str,
        *,
        max_chars: int | None = DEFAULT_CHARS,
        max_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        limit: int | None = None,
        where: Where = EVERYTHING,
        kinds: Sequence[str] = (),
        roles: Sequence[Role] = (),
        mode: Mode = "hybrid",
        floor: bool = True,
        min_score: float = 0.0,
        diversity: float = 0.0,
        latest_first: bool = True,
        neighbors: bool = True,
        links: Sequence[Relation] = (),
        format: Callable[[MemoryRecord, str], str] | None = None,  # noqa: A002  (it formats)
        without: Callable[[MemoryRecord], bool] = shows_nothing_yet,
        explain: bool = False,
    ) -> Recalled:
        """Recall memories about a question as a block for a prompt, escaped and within a budget.

        Args:
            query: A question, or the message to be answered; a blank one recalls nothing.
            explain: Fill `Recalled.considered`: why each memory is in the block or not.

        The other arguments are the fields of `RecallOptions`, which raises `InvalidInputError` for invalid values.
        """
        options = RecallOptions(
            max_chars=max_chars,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            limit=limit,
            where=where,
            kinds=kinds,
            roles=roles,
            mode=mode,
            floor=floor,
            min_score=min_score,
            diversity=diversity,
            latest_first=latest_first,
            neighbors=neighbors,
            links=links,
            format=format,
            without=without,
        )
        return await recall_with(self, query, options, explain=explain)


async def recall_with(handle: Searching, query: str, options: RecallOptions, *, explain: bool = False) -> Recalled:
    """`BoundMemory.recall` with its options as one value, for adapters; `handle` may be another kind of memory."""
    now = handle.memory.clock() if isinstance(handle, _WithClock) else utc_now()
    if isinstance(handle, _WithSpaces):
        options = replace(options, label=handle.label_of)
    return await recall_for(handle, query, options, now=now, explain=explain)
