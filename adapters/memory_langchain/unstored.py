"""The messages that runs have brought and answered, until they are stored.

One invariant holds here: *what a run has brought to its memory waits in its conversation until a model call or the end
of a run of this person there stores it, whatever becomes of the run that brought it.* A run may fail before its first
model call, be cancelled, wait for a person, be resumed by another one, or happen at the same time as another. Nothing
tells that a run has failed, so a run never relies on its own end.

A message that another person or a node may have rewritten after its run was given up is not stored with that text:
only the run itself shows what its own middleware has redacted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory_langchain.thread_changes import Changes, answered

_MOST_CONVERSATIONS: Final = 1_000
"""Most conversations of which something waits; one that is paused may never be resumed."""
_MOST_ANSWERS: Final = 100
"""Most answers that wait in a conversation; those of runs that have failed may never be shown."""


@dataclass(frozen=True, slots=True)
class Brought:
    """The messages that the person of a run has said and changed, and how the agent first saw them."""

    changes: Changes
    invocation: object
    """Compares equal for the same one."""
    seen: Mapping[str, BaseMessage]
    """The agent's messages with these words when it began, by the ids of the messages that the run brought."""

    def as_said(
        self, thread: Mapping[str | None, BaseMessage], invocation: object, edited: AbstractSet[str]
    ) -> Brought:
        """The same in the words of the person, with what middleware has redacted of them since the agent began.

        Args:
            thread: The messages that the agent sees now, by id.
            invocation: The one that sees them.
            edited: Ids of messages to which the person has given another text since.
        """
        is_of_run, found = self.invocation == invocation, self.changes
        asked = [self._said(one, thread, is_of_run=is_of_run, edited=edited) for one in found.asked]
        changed = {
            key: self._said(one, thread, is_of_run=is_of_run, edited=edited) for key, one in found.edited.items()
        }
        return replace(
            self,
            changes=replace(
                found,
                asked=[one for one in asked if one is not None],
                edited={key: one for key, one in changed.items() if one is not None},
            ),
        )

    def _said(
        self,
        message: BaseMessage,
        thread: Mapping[str | None, BaseMessage],
        *,
        is_of_run: bool,
        edited: AbstractSet[str],
    ) -> BaseMessage | None:
        """The message as the input brought it, also if a node had rewritten it before the agent began, or as the
        middleware of its run has rewritten it since; `None` if it was rewritten since its run was given up, and nobody
        can tell by whom."""
        seen = self.seen.get(message.id or "")
        now = None if seen is None else thread.get(seen.id)
        if seen is None or now is None or now.content == seen.content or (not is_of_run and message.id in edited):
            return message
        return message.model_copy(update={"content": now.content}) if is_of_run else None


def brought(changes: Changes, state: Sequence[BaseMessage], invocation: object) -> Brought:
    """The input of a run, and the state of its agent when it began."""
    given = {message.id: message for message in (*changes.asked, *changes.edited.values()) if message.id is not None}
    ids = {message.id: message for message in state if message.id in given}
    missing = {one.text for key, one in given.items() if key not in ids}
    texts = {one.text: one for one in state if isinstance(one, HumanMessage) and one.text in missing} if missing else {}
    seen = {key: found for key, one in given.items() if (found := ids.get(key) or texts.get(one.text)) is not None}
    return Brought(changes, invocation, seen)


@dataclass(slots=True)
class _Conversation:
    brought: list[Brought] = field(default_factory=list[Brought])
    returned: list[BaseMessage] = field(default_factory=list[BaseMessage])
    """The answers of models; the messages get their ids later."""


class Unstored:
    """The messages that wait to be stored, by conversation; runs in several threads put them there and take them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conversations: OrderedDict[Hashable, _Conversation] = OrderedDict()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same: copies of a middleware store what runs of the others have brought."""
        return self

    def __len__(self) -> int:
        """Of how many conversations something waits."""
        return len(self._conversations)

    def bring(self, conversation: Hashable, given: Brought) -> None:
        with self._lock:
            self._of(conversation).brought.append(given)

    def answer(self, conversation: Hashable, messages: Iterable[BaseMessage]) -> None:
        """Add what a model has returned; calls of tools are no answers."""
        answers = [one for one in messages if isinstance(one, AIMessage) and not one.tool_calls]
        if not answers:
            return
        with self._lock:
            waiting = self._of(conversation)
            waiting.returned = [*waiting.returned, *answers][-_MOST_ANSWERS:]

    def take_brought(self, conversation: Hashable, invocation: object, thread: Sequence[BaseMessage]) -> list[Brought]:
        """All that runs have brought, in order and as it was said; see `Brought.as_said`."""
        with self._lock:
            waiting = self._conversations.get(conversation, _Conversation())
            taken, waiting.brought = waiting.brought, []
            self._drop_empty(conversation)
        now = {message.id: message for message in thread}
        edited = {key for given in taken for key in given.changes.edited}
        return [given.as_said(now, invocation, edited) for given in taken]

    def take_answers(self, conversation: Hashable, state: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The answers that a state shows, as it shows them."""
        with self._lock:
            waiting = self._conversations.get(conversation, _Conversation())
            taken = answered(state, waiting.returned)
            ids = {message.id for message in state}
            waiting.returned = [one for one in waiting.returned if one.id is None or one.id not in ids]
            self._drop_empty(conversation)
        return taken

    def _of(self, conversation: Hashable) -> _Conversation:
        found = self._conversations.setdefault(conversation, _Conversation())
        self._conversations.move_to_end(conversation)
        while len(self._conversations) > _MOST_CONVERSATIONS:
            self._conversations.popitem(last=False)
        return found

    def _drop_empty(self, conversation: Hashable) -> None:
        found = self._conversations.get(conversation)
        if found is not None and not found.brought and not found.returned:
            del self._conversations[conversation]
