"""The timer that looks, after each event, whether the session has it: the end of a run may never tell.

A run that is cancelled, as by a time-out or a caller who hangs up, calls nobody after its last event, which the user
may have read. So a timer of the loop, which nobody cancels with the run, follows the session once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event

from memory_adk.service import MemoryService

Follow = Callable[[MemoryService, InvocationContext], Awaitable[None]]

FIRST_SECONDS: Final = 0.2
"""The time after an event at which its session is looked at. The next event of the run, and its end, come first as a
rule."""
LONGEST_SECONDS: Final = 10.0
"""If the session does not have the event by then, it is found at the next turn of the session."""
_LAST: Final = 20
"""Among so many last events of the session the event is looked for."""


class Watching:
    """The runs that one plugin watches, by invocation; each is forgotten when its last event is in its session.

    Args:
        follow: Stores what the session of a run says.
    """

    def __init__(self, follow: Follow) -> None:
        self._follow = follow
        self._watched: dict[str, tuple[asyncio.TimerHandle, MemoryService, InvocationContext]] = {}
        self._looking: set[asyncio.Task[None]] = set()

    def expect(
        self, service: MemoryService, context: InvocationContext, event: Event, seconds: float = FIRST_SECONDS
    ) -> None:
        """Follow the session of a run when it has this event, unless the run tells more before."""
        self.has_told(context)
        timer = asyncio.get_running_loop().call_later(seconds, self._look, service, context, event, seconds)
        self._watched[context.invocation_id] = timer, service, context

    def has_told(self, context: InvocationContext) -> None:
        """Stop watching a run, because what it has told is being followed."""
        if watched := self._watched.pop(context.invocation_id, None):
            watched[0].cancel()

    async def settle(self) -> None:
        """Follow the sessions of all watched runs now."""
        for timer, service, context in list(self._watched.values()):
            timer.cancel()
            self._watched.pop(context.invocation_id, None)
            await self._follow(service, context)

    def _look(self, service: MemoryService, context: InvocationContext, event: Event, seconds: float) -> None:
        self._watched.pop(context.invocation_id, None)
        task = asyncio.ensure_future(self._follow(service, context))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        has_it = any(each.id == event.id for each in context.session.events[-_LAST:])
        if not has_it and seconds < LONGEST_SECONDS:
            self.expect(service, context, event, 4 * seconds)
