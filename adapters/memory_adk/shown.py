"""The part of its conversation that the prompt of an agent shows: memories of it need not be recalled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import ref

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest

from memory_adk.convert import EVENT_ID, event_key
from memory_adk.others import Read
from memory_adk.uploads import contents_of
from memory_core import FieldCondition, MemoryRecord
from memory_core.adapting import one_of


@dataclass(frozen=True)
class Shown:
    """The events of a session that a prompt shows."""

    invocation_id: str = ""
    """The id of the turn."""
    session: str = ""
    """Its id, which is part of the source keys of its events."""
    find: Callable[[], Iterable[Event]] = tuple
    """Reads prompt and session, of which only the tools of the memory ask anything."""
    read: Read | None = None
    """Reads the other sessions of the user, if their session service is known."""

    @cached_property
    def events(self) -> Mapping[str, Event]:
        """By id, in order, as of the first time that this is asked."""
        return {event.id: event for event in self.find()}

    def shows(self, record: MemoryRecord) -> bool:
        """True if a record is of one of them."""
        return record.data.get(EVENT_ID) in self.events

    def condition(self) -> FieldCondition | None:
        """A condition that only their records satisfy."""
        return one_of("source_key", [event_key(event, self.session) for event in self.events.values()])


SHOWS_NOTHING: Final = Shown()
in_conversation: Final[ContextVar[Shown]] = ContextVar("memory_adk_in_conversation", default=SHOWS_NOTHING)
"""The messages that the agent whose tool is running sees of its conversation."""


def shown_in(request: LlmRequest, context: InvocationContext, read: Read) -> Shown:
    """The messages that a request shows: other plugins, and agents without history, leave out a part of the session.

    It holds neither the request nor the session: nothing tells of the end of a turn that was cancelled.
    """
    asked, talk = ref(request), ref(context.session)

    def find() -> Iterable[Event]:
        shows, session = asked(), talk()
        if shows is None or session is None:
            return ()
        shown = [part for content in shows.contents for part in content.parts or []]
        texts = {part.text.strip() for part in shown if part.text}
        together = "\n".join(texts)
        files = list(contents_of(shown))

        def is_shown(event: Event) -> bool:
            parts = (event.content.parts or []) if event.content else []
            said = [part.text.strip() for part in parts if part.text and not part.thought]
            if not said:
                sent = list(contents_of(parts))
                return bool(sent) and all(file in files for file in sent)
            return texts.issuperset(said) or all(text in together for text in said)  # ADK quotes other agents

        return list(filter(is_shown, session.events))

    return Shown(context.invocation_id, context.session.id, find, read)


def in_prompt(context: InvocationContext, read: Read) -> Shown:
    """The messages that the prompt of an agent shows, if no plugin has seen it: all that no compaction has
    summarised, or the current turn for an agent without history."""
    turn, session = context.invocation_id, context.session
    has_history = getattr(context.agent, "include_contents", None) != "none"

    def find() -> Iterable[Event]:
        events = session.events
        return uncompacted(events) if has_history else [event for event in events if event.invocation_id == turn]

    return Shown(turn, session.id, find, read)


def uncompacted(events: Sequence[Event]) -> list[Event]:
    """The events that no compaction has summarised."""
    summaries = (event.actions.compaction for event in events)
    end = max((summary.end_timestamp for summary in summaries if summary), default=float("-inf"))
    return [event for event in events if event.timestamp > end]


def conversation_of(context: InvocationContext, read: Read) -> Shown:
    """The messages that the prompt of the agent of a tool shows."""
    known = in_conversation.get()
    return known if known.invocation_id == context.invocation_id else in_prompt(context, read)
