"""Import ADK's SQLite files through `memory-core import --format adk`."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import groupby
from typing import Final

from google.adk.events.event import Event
from google.genai import types
from pydantic import ValidationError

from memory_adk.convert import event_drafts, keyed
from memory_adk.rewind import live_events
from memory_core import InvalidInputError, utc_now
from memory_core.formats import Found, Refused, file_at, foreign_database

NO_SESSION: Final = "__unknown_session_id__"
"""Session id of ADK's memory services for events that were added without a session."""

_ROWS: Final[Mapping[str, str]] = {
    "memory_events": "SELECT *, event_id AS name FROM memory_events ORDER BY app_name, user_id, session_id, timestamp",
    "events": "SELECT *, id AS name FROM events ORDER BY app_name, user_id, session_id, timestamp, rowid",
}
"""The rows of each table, by owner and session: of a `SqliteMemoryService`, and of a service of sessions."""


async def adk(source: str) -> AsyncIterator[Found | Refused]:
    """The file of ADK's SqliteMemoryService, SqliteSessionService or DatabaseSessionService.

    Raises:
        InvalidInputError: The file is of another program, or of an ADK before 1.19.
    """
    with foreign_database(file_at(source), "a file of ADK") as db:
        columns = {table: {row[1] for row in db.execute(f"PRAGMA table_info ({table})")} for table in _ROWS}
        tables = [table for table, found in columns.items() if {"content_json", "event_data"} & found]
        if not tables:
            raise InvalidInputError(f"{source!r} is not a file of ADK: it has no table of events that is known here")
        for table in tables:
            read = memory_event if table == "memory_events" else _session_event
            rows = db.execute(_ROWS[table])
            for owner, of_session in groupby(rows, lambda row: (row["app_name"], row["user_id"], row["session_id"])):
                if not all(isinstance(name, str) for name in owner):
                    for row in of_session:
                        place = f"session {owner[2]!r}, event {row['name']!r}"
                        yield Refused(place, "its app, its user or its session is not text")
                    continue
                for item in _session(owner, of_session, read):
                    yield item


def _session(
    owner: tuple[str, str, str], rows: Iterator[sqlite3.Row], read: Callable[[sqlite3.Row], Event]
) -> Iterator[Found | Refused]:
    """The messages of a session, without what a rewind has undone."""
    app, user, session = owner
    events: list[Event] = []
    for row in rows:
        try:
            events.append(read(row))
        except (ValidationError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())[:200]
            yield Refused(f"event {row['name']!r}", f"it cannot be read as an event of ADK: {reason}")
    name = None if session == NO_SESSION else session
    for draft in event_drafts(keyed(live_events(events), name), name, {}, utc_now()):
        yield Found(f"session {session}, event {draft.data.get('event_id')}", draft, user=user, app=app)


def memory_event(row: sqlite3.Row) -> Event:
    """An event of a `SqliteMemoryService`.

    Raises:
        ValidationError: It cannot be read as one.
    """
    said = types.Content.model_validate_json(row["content_json"])
    return Event(id=row["name"], author=row["author"], timestamp=row["timestamp"], content=said)


def _session_event(row: sqlite3.Row) -> Event:
    return Event.model_validate_json(row["event_data"])
