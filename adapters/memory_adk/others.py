"""What other sessions have taken back: a rewind calls no plugin, so a session is asked before its memories are shown.

What a rewind of any session has undone is not shown in another one. A session that has changed since it was last read
here is read; the messages that it has not stored yet are left to its own next turn, whose policy applies to them.
"""

from __future__ import annotations

try:
    from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
    from google.adk.sessions.session import Session
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from memory_adk.matching import Alone
from memory_core import BoundMemory, Hit, Where
from memory_core.adapting import Mode, limits, one_line, reason_for_log

logger = logging.getLogger(__name__)

MAX_OTHERS: Final = 5
"""Most sessions that are asked for one search, those of the best hits."""
_EVERYTHING: Final = Where()


class Reading(Protocol):
    """Takes back what sessions have taken back."""

    def has_read(self, session: Session) -> bool:
        """Whether a session, given without its events, is as it was when it was last read."""
        ...

    async def read(self, session: Session) -> None:
        """Leave what a rewind has undone in a whole session, and resume what is live in it again."""
        ...


@dataclass(frozen=True, slots=True)
class Others:
    """The sessions of a user beside the one that is running."""

    reading: Reading
    sessions: BaseSessionService
    app: str
    user: str
    seconds: float = limits.RECALL_SECONDS / 2
    """How long a search waits for them."""

    async def ask(self, names: Collection[str]) -> tuple[bool, frozenset[str]]:
        """Read the sessions that have changed; return whether any has, and those that did not answer in time."""
        asking = {asyncio.ensure_future(self._ask(name)): name for name in names}
        done, late = await asyncio.wait(asking, timeout=self.seconds)
        for task in late:
            task.cancel()
        failed = {task: error for task in done if (error := task.exception()) is not None}
        for task, error in failed.items():
            logger.warning("session %s cannot be read: %s", one_line(asking[task]), reason_for_log(error))
        if late:
            logger.warning("memories of %d sessions are left out: their sessions were not read in time", len(late))
        has_changed = any(task.result() for task in done if task not in failed)
        return has_changed, frozenset(asking[task] for task in (*late, *failed))

    async def _ask(self, name: str) -> bool:
        """Read a session if it has changed. A session that is deleted, or never was one of ADK's, changes nothing."""
        app, user = self.app, self.user
        brief = GetSessionConfig(num_recent_events=0)
        session = await self.sessions.get_session(app_name=app, user_id=user, session_id=name, config=brief)
        if session is None or self.reading.has_read(session):
            return False
        session = await self.sessions.get_session(app_name=app, user_id=user, session_id=name)
        if session is not None:
            await self.reading.read(session)
        return session is not None


class Current:
    """A handle whose searches find nothing that another session has taken back."""

    def __init__(self, handle: BoundMemory | Alone, others: Others, session: str) -> None:
        self._handle, self._others, self._session = handle, others, session
        self.memory = handle.memory
        self.spaces = handle.spaces
        self.label_of = handle.label_of
        self.list = handle.list
        self.profile = handle.profile

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = _EVERYTHING,
        mode: Mode = "hybrid",
        floor: bool = True,
        explain: bool = False,
        apart: bool = False,
    ) -> list[Hit]:
        """`search` again after each session that has changed, until five sessions are asked."""
        asked, out = {self._session}, frozenset[str]()
        while True:
            hits = await self._handle.search(
                query, limit=limit, where=where, mode=mode, floor=floor, explain=explain, apart=apart
            )
            has_changed = False
            while not has_changed and (names := self._names(hits, asked)):
                asked.update(names)
                has_changed, late = await self._others.ask(names)
                out |= late
            if not has_changed:
                return [hit for hit in hits if hit.record.session not in out or self.label_of(hit.record) is not None]

    def _names(self, hits: Sequence[Hit], asked: Collection[str]) -> list[str]:
        """The sessions to ask next, of the best hits; spaces are another owner's."""
        own = (hit.record.session for hit in hits if self.label_of(hit.record) is None)
        return [name for name in dict.fromkeys(own) if name and name not in asked][: MAX_OTHERS + 1 - len(asked)]
