"""Conditions in the form a server can answer, with what it cannot decide looked up first."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

from memory_core.matching import has_keyword, matches_all
from memory_core.models import Scope, Where
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.collection import PAGE, Points
from memory_core.storage.qdrant.filters import Condition, all_of, among, conditions, undecided

_READ: Final = ["data", "text"]


async def reachable(points: Points, scope: Scope, where: Where, now: datetime | None) -> list[Condition] | None:
    """What a record must satisfy to be seen through `scope`; `None` if none does.

    Keywords and conditions on nested data are decided here, on all records that satisfy the rest; what comes out names
    the points.

    Args:
        now: Records that have expired by then do not count; with `None` they do.
    """
    found = conditions(scope, where, now)
    if found is None:
        return None
    if where.ids is not None and len(where.ids) > PAGE:
        found = await _of_those_there(points, found)
    nested = undecided(where)
    if not (nested or where.keywords) or found is None:
        return found
    pages = points.pages(all_of(*found), fields=_READ)
    held = [(str(record.id), record.payload or {}) async for page in pages for record in page]
    matching = [
        point
        for point, payload in held
        if has_keyword(payload["text"], where.keywords) and matches_all(json.loads(payload["data"]), nested)
    ]
    return [*found, among(matching)] if matching else None


async def _of_those_there(points: Points, found: list[Condition]) -> list[Condition] | None:
    """The conditions with no more ids than a request may hold: those of points that exist."""
    named = [condition for condition in found if isinstance(condition, models.HasIdCondition)]
    ids = [str(point) for condition in named for point in condition.has_id]
    there = [str(record.id) for record in await points.read(ids, fields=False)]
    rest = [condition for condition in found if condition not in named]
    return [*rest, among(there)] if there else None
