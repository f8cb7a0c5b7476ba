"""What of a run is handed over to be stored: the messages that are new, turns that were blocked, sessions that were
rewound."""

from __future__ import annotations

try:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import logging
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory_adk.convert import INVOCATION_ID, said
from memory_adk.policy import CapturePolicy
from memory_adk.service import MemoryService
from memory_core import Where
from memory_core.adapting import Writes

logger = logging.getLogger(__name__)

MAX_SESSIONS: Final = 10_000
"""Most sessions whose rewinds are known; a session that is dropped is written again if it contains a rewind."""

SessionKey = tuple[str, str, str]
"""App, user and session."""


@dataclass(frozen=True, slots=True)
class Write:
    """Messages of a session that are to be stored, and turns of it that a guardrail blocked."""

    service: MemoryService
    session: SessionKey
    events: Mapping[str, Event]
    """By id, in order."""
    metadata: Mapping[str, object]
    blocked: frozenset[str] = frozenset()
    """The invocation ids of turns that are to be forgotten."""

    @property
    def conversation(self) -> tuple[int, SessionKey]:
        """The session, in the service that stores it."""
        return id(self.service), self.session

    @property
    def name(self) -> str:
        """The id of the session."""
        return self.session[-1]

    def after(self, earlier: Write) -> Write:
        """Both writes in one, in the order of the session: this one may be all of it, or the rest of a longer one."""
        blocked = earlier.blocked | self.blocked
        before = {name: event for name, event in earlier.events.items() if name not in self.events}
        events = {**before, **self.events}
        kept = {name: event for name, event in events.items() if event.invocation_id not in blocked}
        return replace(self, events=kept, blocked=blocked)

    async def run(self) -> None:
        """Forget the blocked turns, and store the others."""
        app, user, session = self.session
        for turn in self.blocked:
            await self.service.handle(app, user).delete_where(Where(session=session, data={INVOCATION_ID: turn}))
        if self.events:
            await self.service.add_events_to_memory(
                app_name=app,
                user_id=user,
                session_id=session,
                events=list(self.events.values()),
                custom_metadata=self.metadata,
            )


@dataclass(slots=True)
class Progress:
    """How much of a turn has been handed over."""

    seen: set[str] = field(default_factory=set[str])
    """Ids of its events so far. ADK's workflows also remove events, so a position would not do."""
    authors: set[str] = field(default_factory=set[str])
    """Who wrote them."""
    unfinished: list[Event] = field(default_factory=list[Event])
    """The events that the service gets again with the next one."""


class Capture:
    """The captured turns of one plugin, in the order of each session; they are written in the background.

    Args:
        policy: What to store; `None` stores nothing.
    """

    def __init__(self, policy: CapturePolicy | None) -> None:
        self._policy = policy
        self._services: weakref.WeakSet[MemoryService] = weakref.WeakSet()
        self._writes: Writes[Write] = Writes()
        self._rewinds: OrderedDict[SessionKey, set[str]] = OrderedDict()
        """The ids of the rewinds of each session that have been handed over."""

    async def catch_up(self, service: MemoryService, invocation_context: InvocationContext) -> None:
        """Write the whole session if an earlier write of it failed or if it was rewound since its last turn."""
        session = invocation_context.session
        if self._policy is None:
            return
        whole = self._write(service, session, session.events)
        if not (self._was_rewound(session) | self._writes.is_behind(whole.conversation)):
            return
        failed = self._writes.take_failed(whole.conversation)  # the session may have been cut to its latest events
        kept = {event.id: event for event in self._policy.apply(_unblocked(session.events, invocation_context))}
        events = {event.id: kept.get(event.id) or _silent(event) for event in session.events}
        write = replace(whole, events=events)
        await self._put(write if failed is None else write.after(failed))

    async def turn(
        self,
        service: MemoryService,
        invocation_context: InvocationContext,
        progress: Progress,
    ) -> None:
        """Write what is new of a turn; delete the turn if a guardrail answered instead of the agent.

        Args:
            progress: How much of the turn was handed over before; it is brought up to date.
        """
        session, turn = invocation_context.session, invocation_context.invocation_id
        if self._policy is None or not (new := _unseen(session.events, turn, progress.seen)):
            return
        progress.seen.update(event.id for event in new)
        progress.authors.update(event.author for event in new)
        if _is_blocked(progress.authors, invocation_context):
            await self._put(replace(self._write(service, session, ()), blocked=frozenset([turn])))
        elif kept := self._policy.apply([event for event in new if said(event)]):
            events = [*progress.unfinished, *kept]
            progress.unfinished = list(service.unfinished(events))
            await self._put(self._write(service, session, events))

    async def flush(self, *, vectors: bool = False) -> None:
        """Return when everything captured so far is stored or has failed; with `vectors`, when it has vectors, too."""
        await self._writes.settle()
        for service in list(self._services) if vectors else ():
            await service.settled()

    async def close(self, seconds: float) -> None:
        """Retry failed writes once, and wait for all writes, but not longer than this; they go on after that."""
        if not await self._writes.close(seconds):
            logger.warning("turns are still being stored %g seconds after the end of their runner", seconds)

    def _write(self, service: MemoryService, session: Session, events: Sequence[Event]) -> Write:
        metadata = {} if self._policy is None else self._policy.metadata
        return Write(service, _key_of(session), {event.id: event for event in events}, metadata)

    async def _put(self, write: Write) -> None:
        self._services.add(write.service)
        write.service.finish_first(self._writes)
        await self._writes.put(write)

    def _was_rewound(self, session: Session) -> bool:
        """Whether the session contains a rewind that has not been handed over."""
        rewinds = {event.id for event in session.events if event.actions.rewind_before_invocation_id}
        if not rewinds:
            return False
        known = self._rewinds.setdefault(_key_of(session), set())
        self._rewinds.move_to_end(_key_of(session))
        while len(self._rewinds) > MAX_SESSIONS:
            self._rewinds.popitem(last=False)
        is_new = not known.issuperset(rewinds)
        known.update(rewinds)
        return is_new


def _key_of(session: Session) -> SessionKey:
    return session.app_name, session.user_id, session.id


def _unseen(events: Sequence[Event], turn: str, seen: set[str]) -> list[Event]:
    """The events of a turn after the last one that was seen, in order; nothing before it is looked at."""
    new: list[Event] = []
    for event in reversed(events):
        if event.invocation_id == turn:
            if event.id in seen:
                break
            new.append(event)
    return new[::-1]


def _is_blocked(authors: set[str], invocation_context: InvocationContext) -> bool:
    """Whether a plugin answered instead of the agent: only such an answer has the author `model` in ADK."""
    agent = invocation_context.agent
    return authors == {"user", "model"} and (agent is None or agent.name != "model")


def _unblocked(events: Sequence[Event], invocation_context: InvocationContext) -> list[Event]:
    """The events of a session without those of turns that a guardrail blocked."""
    authors: dict[str, set[str]] = {}
    for event in events:
        authors.setdefault(event.invocation_id, set()).add(event.author)
    return [event for event in events if not _is_blocked(authors[event.invocation_id], invocation_context)]


def _silent(event: Event) -> Event:
    """An event without what it says, which still tells where its turn begins: rewinds are resolved by that."""
    return event.model_copy(update={"content": None, "input_transcription": None, "output_transcription": None})
