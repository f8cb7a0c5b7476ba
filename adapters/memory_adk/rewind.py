"""The events of a session that are live and those that are undone: ADK appends a rewind event and does not delete
the undone turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from google.adk.events.event import Event

from memory_adk.convert import keyed

Change = Mapping[str, Event | None]
"""The content of the record of a session, or of a part of it: events that say something, by key and in order; `None`
for one that is undone."""


def live_events(events: Sequence[Event]) -> list[Event]:
    """The events that no rewind has undone, in order, without rewinds.

    A rewind is an event that names an invocation. It undoes everything from the first event of that invocation to the
    rewind itself, including other rewinds in that range. If the list starts after that first event, as in a truncated
    session, the rewind undoes everything before it.
    """
    first: dict[str, int] = {}
    for at, event in enumerate(events):
        first.setdefault(event.invocation_id, at)
    live: list[Event] = []
    at = len(events) - 1
    while at >= 0:
        undone = events[at].actions.rewind_before_invocation_id
        if not undone:
            live.append(events[at])
        at = (min(at, first.get(undone, 0)) if undone else at) - 1
    return live[::-1]


def names_what_is_absent(events: Sequence[Event]) -> bool:
    """True if a rewind undoes a turn that is not in the list, because the list is only the last part of a session."""
    named = {event.actions.rewind_before_invocation_id for event in events} - {None}
    return bool(named) and not named.issubset({event.invocation_id for event in events})


def change_of(
    events: Sequence[Event], session: str | None, blocked: Container[str], before: Counter[str] | None = None
) -> Change:
    """The content of some events of a session, in their order; what a rewind has undone or a guardrail answered is
    undone.

    Args:
        events: All of the session, or a part of it with all rewinds that undo anything of it.
        session: Its id.
        blocked: The ids of invocations that a guardrail answered.
        before: See `keyed`.
    """
    kept = {id(event) for event in live_events(events) if event.invocation_id not in blocked}
    found = keyed(events, session, before)
    return {key: event if id(event) in kept else None for key, event in found.items()}
