"""What an application needs first: remember a conversation, and recall what is known for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

from memory_core.capture.messages import Message, read_messages
from memory_core.capture.remember import DEFAULT_SESSION, Storing, message_drafts, remember_drafts
from memory_core.drafts import check_data
from memory_core.models import Json, MemoryRecord, Mode, Relation, Role, utc_now
from memory_core.protocols import Home
from memory_core.recall.recalling import Searching, recall_for
from memory_core.recall.values import DEFAULT_CHARS, Recalled, RecallOptions, shows_nothing_yet
from memory_core.where.value import Where

EVERYTHING = Where()


class _Handle(Searching, Storing, Protocol):
    """The handle that these operations are a part of."""

    @property
    def memory(self) -> Home: ...


@runtime_checkable
class _WithClock(Protocol):
    """A handle of a memory, which has a clock of its own."""

    @property
    def memory(self) -> Home: ...


class Conversing:
    """The part of a handle that speaks of messages and prompts; everything else of it speaks of records."""

    async def remember(
        self: _Handle,
        messages: Iterable[Message | tuple[str, str] | Mapping[str, object]],
        *,
        session: str | None = None,
        data: Mapping[str, Json] | None = None,
        embed: Literal["now", "later"] = "now",
    ) -> list[MemoryRecord]:
        """Remember a conversation, every message once, however often and in whatever parts it is handed over.

        A message with an id is recognised by it. Those without are laid beside the last messages of the session: what
        continues them is new, what is among them in the same order is known. So a client may send the whole
        conversation again, its last messages, or a request a second time, also from two processes at once. Messages
        that carry times are told apart by them, too.

        Instructions to the model (`system`) and messages without a text are left out.

        Args:
            messages: In order, of one conversation: `Message` values, pairs such as `("user", "I like tea")`, or
                mappings with `role` and `content` as chat APIs pass them.
            session: Which conversation; by default the one the handle is bound to, else the same one for all calls.
            data: Put into every record.
            embed: `"later"` returns before vectors are computed; words find the messages at once.

        Returns:
            The record of every message, in order, also of those known before; without messages that were left out or
            deleted on purpose.

        Raises:
            InvalidInputError: Something is not a message or cannot be stored; nothing of the call is stored then.
        """
        drafts = message_drafts(
            read_messages(messages),
            session=session or self.scope.session or DEFAULT_SESSION,
            data=check_data({} if data is None else data),
        )
        return await remember_drafts(self, drafts, now=self.memory.clock(), embed=embed)

    async def recall(  # noqa: PLR0913  (a keyword for each wish a caller may have, none of them needed)
        self: _Handle,
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
        neighbours: bool = True,
        links: Sequence[Relation] = (),
        format: Callable[[MemoryRecord, str], str] | None = None,  # noqa: A002  (it formats)
        without: Callable[[MemoryRecord], bool] = shows_nothing_yet,
        explain: bool = False,
    ) -> Recalled:
        """Recall what is remembered about a question, as a block for a prompt: safe to show, and within its budget.

        Args:
            query: A question, or the message to be answered; a blank one recalls nothing.
            explain: Fill `Recalled.considered`: why each memory is in the block or not.

        The others are the fields of `RecallOptions`, which raises `InvalidInputError` for values they cannot have.
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
            neighbours=neighbours,
            links=links,
            format=format,
            without=without,
        )
        return await recall_with(self, query, options, explain=explain)


async def recall_with(handle: Searching, query: str, options: RecallOptions, *, explain: bool = False) -> Recalled:
    """`BoundMemory.recall` with the options as a value, also for a memory that is not one: for adapters."""
    now = handle.memory.clock() if isinstance(handle, _WithClock) else utc_now()
    return await recall_for(handle, query, options, now=now, explain=explain)
