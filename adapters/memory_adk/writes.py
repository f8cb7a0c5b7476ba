"""The writes of turns in the background: of each session one at a time, while what follows is gathered for the next."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import asyncio
import atexit
import concurrent.futures
import logging
import os
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from memory_adk.convert import INVOCATION_ID
from memory_adk.service import MemoryService
from memory_core import MemoryCoreError, Where
from memory_core.adapting import core_loop, reason_for_log

logger = logging.getLogger(__name__)

MAX_PENDING: Final = 1_000
"""Most turns with unacknowledged writes. Beyond it, a turn waits for a session to be written, so that memory use
is bounded and no turn is dropped."""

EXIT_SECONDS: Final = 1.5
"""How long an exiting interpreter waits for turns that were not flushed."""

SessionKey = tuple[str, str, str]
"""App, user and session."""
WHOLE_SESSION: Final = ""
"""In place of a turn, for a write that is about all turns of its session."""


@dataclass(frozen=True, slots=True)
class Write:
    """New messages of one turn that are to be stored, or a turn that is to be forgotten."""

    service: MemoryService
    session: SessionKey
    turn: str
    """Its invocation id, or `WHOLE_SESSION`."""
    events: Mapping[str, Event]
    """By id, in order."""
    metadata: Mapping[str, object]
    forgets: bool = False

    async def run(self) -> None:
        """Do it."""
        app, user, session = self.session
        if self.forgets:
            turn = Where(session=session, data={INVOCATION_ID: self.turn})
            await self.service.handle(app, user).delete_where(turn)
            return
        await self.service.add_events_to_memory(
            app_name=app,
            user_id=user,
            session_id=session,
            events=list(self.events.values()),
            custom_metadata=self.metadata,
        )

    def after(self, earlier: Write | None) -> Write:
        """This write together with an earlier one of its turn that has not happened."""
        if earlier is None or self.forgets or earlier.forgets:
            return self
        return replace(self, events={**earlier.events, **self.events})


class Writes:
    """Writes that wait, run or have failed.

    One write of a session runs. Meanwhile one write waits for each of its turns, and takes up what the turn goes on to
    say, so that every message is handed over once, however long the turn and however slow the store.
    """

    def __init__(self) -> None:
        self._begin()
        _unfinished.add(self)

    def _begin(self) -> None:
        """Start without writes, in this process."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        """Locked briefly only: runners on several threads put writes, and the core loop does them."""
        self._waiting: dict[SessionKey, dict[str, Write]] = {}
        """Of each session, by turn, in order."""
        self._running: dict[SessionKey, Future[None]] = {}
        self._failed: dict[tuple[SessionKey, str], Write] = {}
        self._behind: set[SessionKey] = set()

    async def put(self, write: Write) -> None:
        """Do a write after the earlier ones of its session, without waiting for it, unless too many are waiting."""
        if self._pid != os.getpid():  # the parent of this process finishes the pending writes
            self._begin()
        self._start(write)
        if len(self._running) + sum(map(len, list(self._waiting.values()))) >= MAX_PENDING:
            running = [asyncio.wrap_future(future) for future in list(self._running.values())]
            if running:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    def is_behind(self, session: SessionKey) -> bool:
        """Whether a write of this session failed since this was last asked."""
        with self._lock:
            is_behind = session in self._behind
            self._behind.discard(session)
        return is_behind

    def take_failed(self, session: SessionKey) -> dict[str, Event]:
        """The events of failed writes of a session, which are not tried again."""
        with self._lock:
            failed = [at for at, write in self._failed.items() if at[0] == session and not write.forgets]
            return {name: event for at in failed for name, event in self._failed.pop(at).events.items()}

    def try_again(self) -> None:
        """Retry one failed write, since the store may be available again; if it succeeds, it starts the next retry."""
        with self._lock:
            if failed := next(iter(self._failed.values()), None):
                self._start(failed)

    async def settle(self) -> None:
        """Return when nothing is waiting or running."""
        while running := [asyncio.wrap_future(future) for future in list(self._running.values())]:
            await asyncio.wait(running)

    def finish(self) -> int:
        """Wait a limited time without a loop; returns the number of sessions that are still being written."""
        if self._pid != os.getpid():  # the writes belong to the parent of this forked process
            return 0
        return len(concurrent.futures.wait(list(self._running.values()), timeout=EXIT_SECONDS).not_done)

    def _start(self, write: Write) -> None:
        session = write.session
        with self._lock:
            waiting = self._waiting.setdefault(session, {})
            earlier = waiting.pop(write.turn, None)
            failed = self._failed.pop((session, write.turn), None)
            waiting[write.turn] = write.after(earlier).after(failed)
            if session not in self._running:
                self._running[session] = written = core_loop().submit(self._work(session))
                written.add_done_callback(lambda done: self._ended(session, done))

    async def _work(self, session: SessionKey) -> None:
        """Do the waiting writes of a session, until there are no more."""
        while (write := self._next(session)) is not None:
            try:
                await write.run()
            except MemoryCoreError as error:
                self._fail(write, error)
            except Exception as error:  # noqa: BLE001  (a defect must not lose the writes that wait)
                logger.error("a turn of session %s is not stored: %s", session[-1], reason_for_log(error))  # noqa: TRY400
            else:
                self.try_again()

    def _next(self, session: SessionKey) -> Write | None:
        with self._lock:
            waiting = self._waiting.get(session, {})
            if waiting:
                return waiting.pop(next(iter(waiting)))
            self._waiting.pop(session, None)
            del self._running[session]
            return None

    def _ended(self, session: SessionKey, done: Future[None]) -> None:
        """Forget a worker that was cancelled, because its loop ends with the process."""
        with self._lock:
            if self._running.get(session) is done:
                del self._running[session]

    def _fail(self, write: Write, error: MemoryCoreError) -> None:
        """Keep a failed write, in the next one of its turn or session if there is one."""
        session, at = write.session, (write.session, write.turn)
        with self._lock:
            is_news = session not in self._behind
            self._behind.add(session)
            waiting = self._waiting.get(session, {})
            heir = next((turn for turn in (write.turn, WHOLE_SESSION) if turn in waiting), None)
            if heir is None or (write.forgets and heir == WHOLE_SESSION):
                self._failed[at] = write
            else:
                waiting[heir] = waiting[heir].after(write)
            while len(self._failed) > MAX_PENDING:  # the next turn of that session stores the missing messages
                self._failed.pop(next(iter(self._failed)), None)
        if is_news:
            logger.warning("a turn of session %s is not stored yet: %s", session[-1], reason_for_log(error))


_unfinished: weakref.WeakSet[Writes] = weakref.WeakSet()
"""All of this process; a running write keeps its own alive, also when its plugin is gone."""


@atexit.register
def _finish_forgotten() -> None:
    """Store the turns that an exiting script has not flushed. It is registered after the core's exit handler and
    therefore runs before that handler closes the memories."""
    if lost := sum(writes.finish() for writes in list(_unfinished)):
        logger.warning("the last turns of %d sessions were not stored before the process ended", lost)
