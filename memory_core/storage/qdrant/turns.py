"""The order of turns: by time, then arrival, within one session of one owner.

Each point stores its predecessor, so a search can fetch the neighbours of any number of turns in a few requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from memory_core.models import MemoryRecord, Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.collection import Points
from memory_core.storage.qdrant.where import Clause, all_of, between, beyond, owned, same

_FIELDS: Final = ["occurred_at", "_seq"]
NEAR: Final = 8
"""Turns fetched on each side to find the one next to a moment: enough unless more share one microsecond."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The position of a turn in its session."""

    occurred_at: datetime
    seq: int
    point: str


def place_of(record: MemoryRecord, seq: int, point: str) -> Place:
    """The position of a stored or new record."""
    return Place(record.occurred_at, seq, point)


async def around(points: Points, scope: Scope, session: str, first: Place, last: Place) -> list[Place]:
    """The stored turns from the one before `first` to the one after `last`, in order, including `first` and `last`."""
    here = [owned(scope), same("session", session)]
    inside = all_of(*here, between("occurred_at", first.occurred_at, last.occurred_at))
    within, (earlier, later) = await asyncio.gather(
        points.all(inside, fields=_FIELDS),
        points.query(
            [
                _nearest(here, "occurred_at", first.occurred_at, descending=True),
                _nearest(here, "occurred_at", last.occurred_at, descending=False),
            ]
        ),
    )
    places = {_place(record) for record in within}
    if not any(place < first for place in places):
        places.update(await _at_edge(points, here, earlier, descending=True))
    if not any(place > last for place in places):
        places.update(await _at_edge(points, here, later, descending=False))
    before = max((place for place in places if place < first), default=first)
    after = min((place for place in places if place > last), default=last)
    return sorted(place for place in places if before <= place <= after)


async def _at_edge(
    points: Points, here: Sequence[Clause], nearest: Sequence[models.ScoredPoint], *, descending: bool
) -> list[Place]:
    """The turn next to a moment, among those nearest to it, which are ordered by time but not by arrival."""
    places = [_place(record) for record in nearest]
    if len(places) < NEAR or places[0].occurred_at != places[-1].occurred_at:
        return places
    moment = places[0].occurred_at
    tied = [*here, between("occurred_at", moment, moment)]
    (found,) = await points.query([_nearest(tied, "_seq", None, descending=descending)])
    return [_place(record) for record in found]


def _nearest(here: Sequence[Clause], field: str, value: datetime | None, *, descending: bool) -> models.QueryRequest:
    bound = [] if value is None else [beyond(field, value, descending=descending)]
    direction = models.Direction.DESC if descending else models.Direction.ASC
    return models.QueryRequest(
        query=models.OrderByQuery(order_by=models.OrderBy(key=field, direction=direction)),
        filter=all_of(*here, *bound),
        limit=NEAR,
        with_payload=_FIELDS,
    )


def _place(record: models.Record | models.ScoredPoint) -> Place:
    payload: dict[str, Any] = record.payload or {}
    return Place(datetime.fromisoformat(payload["occurred_at"]), payload["_seq"], str(record.id))
