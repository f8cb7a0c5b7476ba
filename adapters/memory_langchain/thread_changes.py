"""The changes that a person has made in a thread, and the words said in it, as LangGraph's record shows them.

One invariant holds here: *what a person has left, edited or said follows from two states of a thread between which
only a person has acted, and from nothing else.* Such states are the two sides of an `update_state`, of the input of a
run, and of the choice of another checkpoint. What nodes and middleware add, rewrite or trim lies between other states:
it is nobody's wish and nobody's words. Without a record, the last question is what was said, and nothing is ever left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

try:
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

Channels = Mapping[str, Sequence[BaseMessage]]
"""The messages of a thread, by the channel that holds them."""

MESSAGES: Final = "messages"
"""The channel of an agent's messages."""

_WRITTEN_BY: Final = "lc_source"
"""Key with which LangChain marks messages of its own middleware (langchain 1.4, `summarization.py`)."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a run, as the record tells it."""

    cause: Literal["input", "resumption", "unknown"]
    """The input that began the run. A resumption repeats or continues another run and brings nothing. If the input
    cannot be read, the last questions that the thread did not show before are what was said."""
    shown: Channels = field(default_factory=dict[str, Sequence[BaseMessage]])
    """At the start, before the input."""
    applied: Channels | None = None
    """With the input, before any node; `None` if that is the state of the agent."""
    before_updates: Channels | None = None
    """Before the calls of `update_state` directly before the run; `None` without such a call."""
    added: Sequence[BaseMessage] = ()
    """The messages that the person of this run added with those calls, as they were added, if they are still there."""
    foreign: frozenset[str] = frozenset()
    """Ids of messages whose text another person wrote with those calls."""
    departed: Channels | None = None
    """Of the newest checkpoint, if the person has gone back to an older one."""
    private: Channels = field(default_factory=dict[str, Sequence[BaseMessage]])
    """The messages that an agent with a history of its own inside a graph (`checkpointer=True`) showed before."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The messages that the person of a run has said, and has changed in the thread, until the run began."""

    asked: Sequence[BaseMessage] = ()
    """The messages of the person, in order; never messages of nodes, summaries, supervisors or earlier runs."""
    left: frozenset[str] = frozenset()
    """Ids of messages that a person has taken out of the thread, or has gone back behind."""
    resumed: frozenset[str] = frozenset()
    """Ids that the thread shows; those of them that were left are so no longer."""
    edited: Mapping[str, BaseMessage] = field(default_factory=dict[str, BaseMessage])
    """The messages whose text a person has changed, by id, as they are now."""
    has_record: bool = True
    """True if LangGraph's record tells it."""


def changes(start: Start | None, state: Sequence[BaseMessage]) -> Changes:
    """Compare the start of a run with the messages that its agent sees first; without a start, nothing has changed."""
    if start is None:
        return Changes(last_questions(state), has_record=False)
    known = by_id(start.shown).keys() | by_id(start.private).keys()
    if start.cause == "resumption":
        return _compared(start, start.added, start.shown)
    if start.cause == "unknown":
        return _compared(start, [*start.added, *_without(known, last_questions(state))], start.shown)
    applied = {**start.shown, MESSAGES: state} if start.applied is None else start.applied
    return _compared(start, [*start.added, *_asked(applied, known, state)], applied)


def answered(state: Sequence[BaseMessage], returned: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The answers of an agent in this invocation: what its model calls returned, as the state shows it in the end.

    Args:
        state: The messages of the agent at the end of the invocation.
        returned: The messages that its model calls have returned; they have got their ids from the state.
    """
    ids = {message.id for message in returned} - {None}
    return [one for one in state if isinstance(one, AIMessage) and one.id in ids and not one.tool_calls]


def said_in_run(start: Start | None, state: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages of the person of a run, and the answers to them so far, without calls of tools."""
    asked = changes(start, state).asked
    if start is None:
        first = next((at for at, one in enumerate(state) if any(one is said for said in asked)), len(state))
        answers = state[first:]
    else:
        answers = _without(by_id(start.shown).keys() | by_id(start.private).keys(), state)
    return [*asked, *(one for one in answers if isinstance(one, AIMessage) and not one.tool_calls)]


def last_questions(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The human messages at the end, in order, without those that LangChain's own middleware has written.

    Instructions between and behind them are passed over.
    """
    found: list[BaseMessage] = []
    for message in reversed(messages):
        if is_said(message):
            found.append(message)
        elif not isinstance(message, HumanMessage | SystemMessage):
            break
    return found[::-1]


def is_spoken(message: BaseMessage) -> bool:
    """True if it is said, or an answer without calls of tools."""
    return is_said(message) or (isinstance(message, AIMessage) and not message.tool_calls)


def is_said(message: BaseMessage) -> bool:
    """True if it is a human message that is not marked as written by LangChain's own middleware."""
    return isinstance(message, HumanMessage) and _WRITTEN_BY not in message.additional_kwargs


def by_id(channels: Channels) -> dict[str, BaseMessage]:
    """The messages of all channels that have an id."""
    return {message.id: message for messages in channels.values() for message in messages if message.id}


def _asked(applied: Channels, known: Iterable[str], state: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages that the input brought, as far as the agent sees them.

    An agent that a node calls with messages of its own sees other objects: the same words are the same message. Where
    the input of the graph has no messages at all, the last question of the agent is what was said.
    """
    brought = [one for messages in applied.values() for one in _without(known, last_questions(messages))]
    if not brought:
        return _without(known, last_questions(state))
    ids, texts = {one.id for one in state} - {None}, {one.text for one in state if isinstance(one, HumanMessage)}
    seen = {one.id: one for one in brought if one.id in ids or one.text in texts}
    return list(seen.values())


def _compared(start: Start, asked: Sequence[BaseMessage], applied: Channels) -> Changes:
    """The changes from each of the earlier states to that of now.

    Between two branches nodes have acted, and other people: there only a text that the input brought is an edit.
    """
    shown, now = by_id(start.shown), by_id(applied)
    departed, before = by_id(start.departed or {}), by_id(start.before_updates or {})
    left = frozenset(key for key in {**before, **departed, **shown} if key not in now)
    updated = {**_rewritten(before, now), **_rewritten(by_id({MESSAGES: start.added}), now)}
    brought = {**_rewritten(shown, now), **_rewritten(departed, {key: now[key] for key in now if key not in shown})}
    edited = {**{key: one for key, one in updated.items() if key not in start.foreign}, **brought}
    return Changes(asked, left, frozenset(shown) - left, edited)


def _rewritten(before: Mapping[str, BaseMessage], now: Mapping[str, BaseMessage]) -> dict[str, BaseMessage]:
    """The messages that have another text now."""
    return {key: one for key, one in now.items() if key in before and before[key].content != one.content}


def _without(known: Iterable[str], messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    ids = set(known)
    return [message for message in messages if message.id not in ids]
