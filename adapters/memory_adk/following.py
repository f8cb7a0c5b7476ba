"""Follow a session: what is live in its record is kept, what a rewind has undone is left, and nothing else is known.

The record is the session of the session service. Callbacks are only a reason to read it: a run that is cancelled, a
process that is killed and an application that appends events tell nobody, and their events are found at the next turn.

- The keys of what is kept are the watermark. A list of events may be any part of a session, and in any order: what is
  absent from it is neither left nor deleted.
- A process remembers at which place of the list it has stopped. If the same event is there again, only what follows it
  is compared; otherwise the whole list is.
- A turn is stored from the moment that an agent begins to answer it. What a guardrail answered is not stored, so that
  nothing has to be deleted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session

from memory_adk.convert import keyed
from memory_adk.kept import Kept
from memory_adk.latest import Latest
from memory_adk.policy import CapturePolicy
from memory_adk.rewind import Change, change_of, names_what_is_absent
from memory_adk.service import MemoryService
from memory_adk.zone import zone_of

_BY_RUNNER: Final = "e-"
"""The beginning of the ids of invocations that ADK's runner makes."""


@dataclass(slots=True)
class _Place:
    """The place where a process has stopped in the list of a session's events."""

    kept: Kept
    """One for as long as the zone stays: messages that it tells while the store is busy are written together."""
    zone: tzinfo | None
    """The zone in which the person of the session is."""
    at: int = -1
    event: str = ""
    """The id of the event there."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """The number of events of the turn there, by their key."""

    def start_in(self, events: Sequence[Event]) -> int:
        """The index of the first event that follows this place; 0 if the list is another one."""
        is_same = 0 <= self.at < len(events) and events[self.at].id == self.event
        return self.at + 1 if is_same else 0


class Following:
    """The sessions that one plugin follows; they are written in the background, each in its order.

    Args:
        policy: The rules for what is stored; `None` stores nothing.
    """

    def __init__(self, policy: CapturePolicy | None) -> None:
        self._policy = policy
        self._services: set[MemoryService] = set()
        self._places = Latest[tuple[MemoryService, str, str, str], _Place]()

    async def follow(self, service: MemoryService, context: InvocationContext, *, undecided: bool = False) -> None:
        """Store what the session of a run says and was not followed before.

        Args:
            service: The service that stores them.
            context: The run.
            undecided: True if a guardrail may still answer its turn, which is not stored until then.
        """
        if self._policy is None:
            return
        session, turn = context.session, context.invocation_id
        events: Sequence[Event] = session.events
        if undecided:
            events = [event for event in events if event.invocation_id != turn]
        name = session.app_name, session.user_id, session.id
        zone, known = zone_of(session.state), self._places.get((service, *name))
        place = self._places.note((service, *name), known or _Place(service.kept(*name, zone), zone))
        if place.zone != zone:  # the person has travelled
            place.kept, place.zone = service.kept(*name, zone), zone
        start = place.start_in(events)
        new: Sequence[Event] = events[start:]
        if start and any(event.actions.rewind_before_invocation_id for event in new):
            start, new = 0, events
        if not new:
            return
        if names_what_is_absent(new):
            new = await _whole(session, context.session_service)
        if start == 0 or new[0].invocation_id != events[start - 1].invocation_id:
            place.counts.clear()
        for blocked in _blocked(new, context):
            service.block(blocked)
        change = change_of(new, session.id, service.blocked, place.counts)
        place.at, place.event = len(events) - 1, events[-1].id
        if start == 0:
            place.counts = _of_last_turn(new, session.id)
        self._services.add(service)
        await place.kept.follow(_policed(change, self._policy), self._policy.metadata)

    async def flush(self) -> None:
        """Return when everything followed so far is stored or has failed."""
        for service in list(self._services):
            await service.conversations.writes.settle()

    async def close(self, seconds: float) -> None:
        """Retry failed writes once, and wait for all writes, but not longer than this; they go on after that."""
        await asyncio.gather(*(service.conversations.close(seconds) for service in self._services))


def _policed(change: Change, policy: CapturePolicy) -> Change:
    """A change with the live events as the policy stores them."""
    stored = {key: event and policy.apply(event) for key, event in change.items()}
    return {key: event for key, event in stored.items() if event is not None or change[key] is None}


async def _whole(session: Session, sessions: BaseSessionService) -> Sequence[Event]:
    """All events of a session whose list has been cut."""
    found = await sessions.get_session(app_name=session.app_name, user_id=session.user_id, session_id=session.id)
    return session.events if found is None else found.events


def _of_last_turn(events: Sequence[Event], session: str) -> Counter[str]:
    """The number of events of the last turn, by their key."""
    counts = Counter[str]()
    keyed([event for event in events if event.invocation_id == events[-1].invocation_id], session, counts)
    return counts


def _blocked(events: Sequence[Event], context: InvocationContext) -> frozenset[str]:
    """The turns that a guardrail answered, as far as the record tells: each event of an `LlmAgent` has a path, and what
    a plugin answers in its place has the author `model` and none. Of other agents nobody knows."""
    if not isinstance(context.agent, LlmAgent):
        return frozenset()
    by_agent = {event.invocation_id for event in events if not (event.author == "user" or is_of_plugin(event))}
    by_plugin = {event.invocation_id for event in events if is_of_plugin(event)}
    return frozenset(turn for turn in by_plugin - by_agent if turn.startswith(_BY_RUNNER))


def is_of_plugin(event: Event) -> bool:
    """True if an event may be what a plugin answers in the place of the agent."""
    return event.author == "model" and not event.node_info.path
