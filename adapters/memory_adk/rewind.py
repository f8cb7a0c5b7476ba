"""Rewinds: ADK appends a rewind event to the session and does not delete the undone turns."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from memory_adk.convert import EVENT_ID, INVOCATION_ID, moment
from memory_core import BoundMemory, DataCondition, Where
from memory_core.adapting import bring_back, every_record, take_back, take_back_where

ANY_STATE: Final = ("active", "compacted", "archived")

_TICK: Final = timedelta(microseconds=1)
_AT_ONCE: Final = 500
"""Turns that are taken back together; a condition has at most 1,000 alternatives."""


def resolve_rewinds(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Return the events that no rewind has undone, and the effective rewinds, both in order.

    A rewind is an event that names an invocation. It undoes everything from the first event of that invocation to the
    rewind itself, including other rewinds in that range. If the list starts after that first event, as in a truncated
    session, the rewind undoes everything before it.
    """
    first: dict[str, int] = {}
    for at, event in enumerate(events):
        first.setdefault(event.invocation_id, at)
    live: list[Event] = []
    marks: list[Event] = []
    at = len(events) - 1
    while at >= 0:
        undone = events[at].actions.rewind_before_invocation_id
        (marks if undone else live).append(events[at])
        at = (min(at, first.get(undone, 0)) if undone else at) - 1
    return live[::-1], marks[::-1]


def _first_moment(events: Iterable[Event], invocation_id: str) -> datetime | None:
    """The start of an invocation according to the events, if known."""
    times = (moment(event.timestamp) for event in events if event.invocation_id == invocation_id)
    return min((at for at in times if at is not None), default=None)


async def follow_rewinds(handle: BoundMemory, events: Sequence[Event], session_id: str | None) -> Sequence[Event]:
    """Take back what the rewinds of a session have undone, and bring back what was undone by rewinds that are undone
    themselves. Returns the events that no rewind has undone."""
    live, rewinds = resolve_rewinds(events)
    if not session_id:
        return live
    if rewinds:
        await _take_back_undone(handle, rewinds, events, live, session_id)
    if len(rewinds) < sum(1 for event in events if event.actions.rewind_before_invocation_id):
        ids = {event.id for event in live}
        undone = await every_record(handle, Where(session=session_id, states=("compacted",)))
        await bring_back(handle, [record for record in undone if record.data.get(EVENT_ID) in ids])
    return live


async def _take_back_undone(
    handle: BoundMemory, rewinds: Sequence[Event], events: Sequence[Event], live: Sequence[Event], session_id: str
) -> None:
    """Take back what was said in the parts of a session that its rewinds undid.

    What is in the events is known by them, whatever the clocks said; of what a session no longer contains, the times
    tell.

    Args:
        handle: The memory of the user.
        rewinds: Those that are effective.
        events: All of the session that there are.
        live: Those of them that no rewind has undone.
        session_id: The session.
    """
    kept = {event.id for event in live}
    shown = {event.invocation_id for event in (*live, *rewinds)}
    undone = sorted({event.invocation_id for event in events} - shown - {""})
    for start in range(0, len(undone), _AT_ONCE):
        said = DataCondition((INVOCATION_ID,), "in", undone[start : start + _AT_ONCE])
        await take_back_where(handle, Where(session=session_id, matching=[said], states=ANY_STATE))
    for rewind in rewinds:
        if (stretch := await _stretch(handle, rewind, events, session_id)) is not None:
            found = await every_record(handle, stretch)
            await take_back(handle, [record for record in found if record.data.get(EVENT_ID) not in kept])


async def _stretch(handle: BoundMemory, rewind: Event, events: Sequence[Event], session_id: str) -> Where | None:
    """What was said from the named invocation to the rewind, by time, if the times are known."""
    invocation, until = rewind.actions.rewind_before_invocation_id or "", moment(rewind.timestamp)
    since = _first_moment(events, invocation)
    if since is None:
        where = Where(session=session_id, data={INVOCATION_ID: invocation})
        page = await handle.list(where=where, order="oldest", limit=1)
        since = page.records[0].occurred_at if page.records else None
    if since is None or until is None:
        return None
    return Where(session=session_id, since=since, until=until + _TICK, states=ANY_STATE)
