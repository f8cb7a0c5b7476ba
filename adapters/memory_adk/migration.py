"""Import from ADK's own memory services: memories of all users, with authors and times; imports can be repeated."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
    from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
    from pydantic import ValidationError
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterable
from typing import Final

from memory_adk.importer import NO_SESSION, memory_event
from memory_adk.service import MemoryService
from memory_core import InvalidInputError
from memory_core.adapting import database, file_at

_SESSIONS: Final = "SELECT DISTINCT app_name, user_id, session_id FROM memory_events ORDER BY 1, 2, 3"
_EVENTS: Final = (
    "SELECT event_id AS name, author, timestamp, content_json FROM memory_events "
    "WHERE app_name = ? AND user_id = ? AND session_id = ? ORDER BY timestamp, id"
)

_Session = tuple[str, str, str, list[Event]]


async def import_in_memory(service: MemoryService, source: InMemoryMemoryService) -> int:
    """Remember everything in an `InMemoryMemoryService`. Returns the number of events read.

    Thoughts, attachments and function parts are left out, as everywhere; events already known are not changed.

    Raises:
        MemoryCoreError: The service cannot store an event; earlier events are stored.
    """
    # The service has no method that lists its events.
    known = source._session_events  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    sessions = [
        (app, user, session, list(events))
        for (app, user), of_user in known.items()
        for session, events in of_user.items()
    ]
    return sum([await _import(service, session) for session in sessions])


async def import_sqlite(service: MemoryService, path: str | os.PathLike[str]) -> int:
    """Remember everything in the file of a `SqliteMemoryService`. Returns the number of events. The file is only read.

    Raises:
        InvalidInputError: The file does not exist or was not written by that service.
        MemoryCoreError: The service cannot store an event; earlier events are stored.
    """
    return sum([await _import(service, session) async for session in _sessions_in(os.fspath(path))])


async def _import(service: MemoryService, session: _Session) -> int:
    app, user, name, events = session
    await service.add_events_to_memory(
        app_name=app, user_id=user, events=events, session_id=None if name == NO_SESSION else name
    )
    return len(events)


async def _sessions_in(path: str) -> AsyncIterator[_Session]:
    for app, user, session in await asyncio.to_thread(_rows, path, _SESSIONS):
        rows = await asyncio.to_thread(_rows, path, _EVENTS, (app, user, session))
        yield app, user, session, [_event(row) for row in rows]


def _rows(path: str, query: str, values: Iterable[str] = ()) -> list[sqlite3.Row]:
    with database(file_at(path), "the file of a SqliteMemoryService") as db:
        return db.execute(query, tuple(values)).fetchall()


def _event(row: sqlite3.Row) -> Event:
    try:
        return memory_event(row)
    except ValidationError as error:
        raise InvalidInputError(f"the content of event {row['name']!r} is not valid ADK content: {error}") from error
