"""The list of conversations, the latest first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final

from memory_core.app.serve.conditions import query_of
from memory_core.app.serve.shapes import line_of
from memory_core.app.serve.visits import Visit, visit
from memory_core.handle import BoundMemory
from memory_core.models import MemoryRecord, Stats
from memory_core.short_page import short_page
from memory_core.values.limits import PAGE_BYTES
from memory_core.where.where import ANY_STATE

try:
    from fastapi import APIRouter, Depends, Query, Response
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

PAGE: Final = 20
"""Conversations that are enough for a page."""
_READ_AT_ONCE: Final = 200
_MOST_READ: Final = 2_000
"""Memories that are read for a page; a longer conversation goes on with a page that has none."""

routes = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, known by its first words."""

    session: str
    first: str
    """Its first memory, as a list shows it: the whole ones of all conversations may be very long together."""
    counts: Stats
    query: str
    """The list of its memories."""


@routes.get("/o/{app}/{user}/conversations")
async def conversations(found: Annotated[Visit, Depends(visit)], cursor: Annotated[str, Query()] = "") -> Response:
    """The conversations whose last memory stands on this page of all memories."""
    last: dict[str, MemoryRecord] = {}
    read, place = 0, cursor or None
    while True:
        page = await short_page(
            found.owner, where=ANY_STATE, order="newest", limit=_READ_AT_ONCE, cursor=place, most_bytes=PAGE_BYTES
        )
        for record in page.records:
            if record.session is not None:
                last.setdefault(record.session, record)
        read, place = read + len(page.records), page.cursor
        if place is None or len(last) >= PAGE or read >= _MOST_READ:
            break
    some = await asyncio.gather(*(_conversation(found.owner, name, record) for name, record in last.items()))
    more = None if place is None else query_of([("cursor", place)])
    shown = [each for each in some if each is not None]
    return found.drawn("conversations.html", conversations=shown, more=more, is_first=not cursor)


async def _conversation(owner: BoundMemory, session: str, last: MemoryRecord) -> Conversation | None:
    """The conversation; `None` if a page before has it, because it goes on after its last memory on this one."""
    handle = owner.bind(session=session)
    (newest,) = (await handle.list(where=ANY_STATE, order="newest", limit=1)).records or [None]
    if newest is None or newest.id != last.id:
        return None
    (oldest,) = (await handle.list(where=ANY_STATE, order="oldest", limit=1)).records or [last]
    return Conversation(session, line_of(oldest).text, await handle.stats(), query_of([("session", session)]))
