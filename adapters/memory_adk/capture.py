"""Background writes of turns: they neither delay nor fail a run, and no turn is dropped."""

from __future__ import annotations

try:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import asyncio
import atexit
import concurrent.futures
import logging
import os
import weakref
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Final

from memory_adk.convert import INVOCATION_ID, said
from memory_adk.policy import CapturePolicy
from memory_adk.service import MemoryService
from memory_core import MemoryCoreError, Where
from memory_core.adapting import core_loop, reason_for_log

logger = logging.getLogger(__name__)

MAX_PENDING: Final = 1_000
"""Most unacknowledged writes. Beyond this number a turn waits for one of them, so that memory use is bounded and no
turn is dropped."""

EXIT_SECONDS: Final = 1.5
"""How long an exiting interpreter waits for turns that were not flushed."""

_SessionKey = tuple[str, str, str]
_TurnKey = tuple[_SessionKey, str]
_Work = Callable[[], Awaitable[None]]


class Capture:
    """The writes of one plugin: ordered within a session, run on the core loop, and awaited only by `flush`.

    Args:
        policy: What to store; `None` stores nothing.
    """

    def __init__(self, policy: CapturePolicy | None) -> None:
        self._policy = policy
        self._services: weakref.WeakSet[MemoryService] = weakref.WeakSet()
        self._begin()
        _captures.add(self)

    def _begin(self) -> None:
        """Start without pending writes, in this process."""
        self._pid = os.getpid()
        self._pending: set[Future[None]] = set()
        self._latest: dict[_SessionKey, Future[None]] = {}
        self._behind: set[_SessionKey] = set()
        self._newest: dict[_TurnKey, _Work] = {}
        """The latest pending write of each turn; it includes or revokes the content of earlier ones."""
        self._failed: dict[_TurnKey, _Work] = {}

    async def catch_up(self, service: MemoryService, invocation_context: InvocationContext) -> None:
        """Write the whole session if an earlier write of it failed or if it was rewound just before this turn."""
        session, key = invocation_context.session, _key_of(invocation_context.session)
        if key in self._behind or _was_rewound(invocation_context):
            self._behind.discard(key)
            for turn in [turn for turn in list(self._failed) if turn[0] == key]:
                self._failed.pop(turn, None)  # writing the whole session includes it, unless it was undone
            await self._add((key, ""), service, session, session.events)

    async def turn(self, service: MemoryService, invocation_context: InvocationContext, captured: set[str]) -> None:
        """Write the turn so far if anything new was said; delete the turn if a guardrail answered instead of the agent.

        The service gets the whole turn, because it may store exchanges; messages already stored are not changed.

        Args:
            captured: Ids of the events of the turn that were written before; those written now are added.
        """
        session, turn = invocation_context.session, invocation_context.invocation_id
        events = [event for event in session.events if _says(event, turn)]
        if _was_blocked(invocation_context):
            await self._forget(service, invocation_context)
        elif not captured.issuperset(event.id for event in events):
            captured.update(event.id for event in events)
            await self._add((_key_of(session), turn), service, session, events)

    async def flush(self, *, vectors: bool = False) -> None:
        """Return when everything captured so far is stored or has failed; with `vectors`, when it has vectors, too."""
        while pending := [asyncio.wrap_future(future) for future in list(self._pending)]:
            await asyncio.wait(pending)
        for service in list(self._services) if vectors else ():
            await service.settled()

    async def close(self) -> None:
        """Retry failed writes once, then `flush`."""
        await self.flush()
        self._try_again()
        await self.flush()

    def flush_at_exit(self) -> set[Future[None]]:
        """Wait a limited time for pending writes; return those that are still not finished."""
        if self._pid != os.getpid():  # the writes belong to the parent of this forked process
            return set()
        return concurrent.futures.wait(list(self._pending), timeout=EXIT_SECONDS).not_done

    async def _forget(self, service: MemoryService, invocation_context: InvocationContext) -> None:
        """Delete the stored part of a turn."""
        session = invocation_context.session
        turn = Where(session=session.id, data={INVOCATION_ID: invocation_context.invocation_id})

        async def delete() -> None:
            await service.handle(session.app_name, session.user_id).delete_where(turn)

        await self._write((_key_of(session), invocation_context.invocation_id), delete)

    async def _add(self, turn: _TurnKey, service: MemoryService, session: Session, events: Sequence[Event]) -> None:
        """Write what the policy keeps of some events."""
        if self._policy is None:
            return
        kept, metadata = self._policy.apply(events), self._policy.metadata
        if kept:
            self._services.add(service)
            await self._write(
                turn,
                lambda: service.add_events_to_memory(
                    app_name=session.app_name,
                    user_id=session.user_id,
                    session_id=session.id,
                    events=kept,
                    custom_metadata=metadata,
                ),
            )

    async def _write(self, turn: _TurnKey, work: _Work) -> None:
        """Start `work` after earlier work for the same session, without waiting for it."""
        if self._policy is None:
            return
        if self._pid != os.getpid():  # the parent of this process finishes the pending writes
            self._begin()
        self._start(turn, work)
        if len(self._pending) >= MAX_PENDING:
            waiting = [asyncio.wrap_future(future) for future in list(self._pending)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, turn: _TurnKey, work: _Work) -> None:
        key = turn[0]
        previous = self._latest.get(key)
        self._newest[turn] = work
        self._failed.pop(turn, None)

        async def write() -> None:
            if previous is not None:
                await asyncio.wait([asyncio.wrap_future(previous)])
            try:
                await work()
            except MemoryCoreError as error:
                if self._newest.get(turn) is work:
                    self._note_failure(turn, work, error)
            else:
                self._try_again()

        def finished(written: Future[None]) -> None:
            self._pending.discard(written)
            if self._latest.get(key) is written:
                del self._latest[key]
            if self._newest.get(turn) is work:
                del self._newest[turn]
            if not written.cancelled() and (error := written.exception()):
                logger.error("a turn of session %s is not stored: %s", key[-1], reason_for_log(error))

        self._latest[key] = written = core_loop().submit(write())
        self._pending.add(written)
        written.add_done_callback(finished)

    def _note_failure(self, turn: _TurnKey, work: _Work, error: MemoryCoreError) -> None:
        if turn[0] not in self._behind:
            logger.warning("a turn of session %s is not stored yet: %s", turn[0][-1], reason_for_log(error))
        self._behind.add(turn[0])
        self._failed[turn] = work
        while len(self._failed) > MAX_PENDING:  # the next turn of that session stores the missing messages
            self._failed.pop(next(iter(self._failed)), None)

    def _try_again(self) -> None:
        """Retry one failed turn, since the store may be available again; if it succeeds, it starts the next retry."""
        if turn := next(iter(list(self._failed)), None):
            self._start(turn, self._failed[turn])


_captures: weakref.WeakSet[Capture] = weakref.WeakSet()


@atexit.register
def _flush_forgotten() -> None:
    """Store the turns that an exiting script has not flushed. It is registered after the core's exit handler and
    therefore runs before that handler closes the memories."""
    if lost := [written for capture in list(_captures) for written in capture.flush_at_exit()]:
        logger.warning("%d writes were not stored before the process ended", len(lost))


def _key_of(session: Session) -> _SessionKey:
    return session.app_name, session.user_id, session.id


def _says(event: Event, invocation_id: str) -> bool:
    return event.invocation_id == invocation_id and bool(said(event))


def _was_rewound(invocation_context: InvocationContext) -> bool:
    """Whether the session was rewound just before this turn."""
    for event in reversed(invocation_context.session.events):
        if event.invocation_id != invocation_context.invocation_id:
            return bool(event.actions.rewind_before_invocation_id)
    return False


def _was_blocked(invocation_context: InvocationContext) -> bool:
    """Whether a plugin answered instead of the agent: only such an answer has the author `model` in ADK."""
    events = invocation_context.session.events
    authors = {event.author for event in events if event.invocation_id == invocation_context.invocation_id}
    agent = invocation_context.agent
    return authors == {"user", "model"} and (agent is None or agent.name != "model")
