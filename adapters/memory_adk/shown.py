"""What the prompt of an agent shows of its conversation: memories of it need not be recalled."""

from __future__ import annotations

try:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from memory_adk.uploads import contents_of


@dataclass(frozen=True)
class Shown:
    """The events that a prompt shows."""

    invocation_id: str = ""
    """Whose turn it is."""
    find: Callable[[], frozenset[str]] = frozenset
    """Reads prompt and session, of which only the tools of the memory ask anything."""

    @cached_property
    def events(self) -> frozenset[str]:
        """Their ids, as of the first time that this is asked."""
        return self.find()


in_conversation: Final[ContextVar[Shown]] = ContextVar("memory_adk_in_conversation", default=Shown())  # noqa: B039
"""What the conversation of the agent whose tool is running shows."""


def shown_in(request: LlmRequest, context: InvocationContext) -> Shown:
    """What a request shows: other plugins, and agents without history, leave out a part of the session."""

    def find() -> frozenset[str]:
        texts = {part.text.strip() for content in request.contents for part in content.parts or [] if part.text}
        together = "\n".join(texts)
        files = [file for content in request.contents for file in contents_of(content.parts or [])]

        def is_shown(event: Event) -> bool:
            parts = (event.content.parts or []) if event.content else []
            said = [part.text.strip() for part in parts if part.text and not part.thought]
            if not said:
                sent = list(contents_of(parts))
                return bool(sent) and all(file in files for file in sent)
            return all(text in texts or text in together for text in said)  # ADK quotes other agents

        return frozenset(event.id for event in context.session.events if is_shown(event))

    return Shown(context.invocation_id, find)


def in_prompt(context: InvocationContext) -> Shown:
    """What the prompt of an agent shows, if no plugin has seen it: all that no compaction has summarised, or the
    current turn for an agent without history."""
    turn, events = context.invocation_id, context.session.events
    if getattr(context.agent, "include_contents", None) == "none":
        return Shown(turn, lambda: frozenset(event.id for event in events if event.invocation_id == turn))
    return Shown(turn, lambda: uncompacted(events))


def uncompacted(events: Sequence[Event]) -> frozenset[str]:
    """Ids of the events that no compaction has summarised."""
    summaries = (event.actions.compaction for event in events)
    end = max((summary.end_timestamp for summary in summaries if summary), default=float("-inf"))
    return frozenset(event.id for event in events if event.timestamp > end)


def conversation_of(context: InvocationContext) -> Shown:
    """What the prompt of the agent of a tool shows."""
    known = in_conversation.get()
    return known if known.invocation_id == context.invocation_id else in_prompt(context)
