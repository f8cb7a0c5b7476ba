"""Conditions in the form a server can answer, with what it cannot decide looked up first."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory_core.matching import has_keyword, matches_all
from memory_core.models import Scope, Where
from memory_core.storage.qdrant.collection import PAGE, Points
from memory_core.storage.qdrant.filters import Condition, all_of, among, conditions, owned, undecided

_READ: Final = ["data", "text"]


async def reachable(points: Points, scope: Scope, where: Where, now: datetime | None) -> list[Condition] | None:
    """What a record must satisfy to be seen through `scope`; `None` if none does.

    Keywords and conditions on nested data are decided here, on all records that satisfy the rest; what comes out names
    the points.

    Args:
        now: Records that have expired by then do not count; with `None` they do.
    """
    there: list[Condition] = []
    if where.ids is not None and len(where.ids) > PAGE:  # more than a condition may hold: the points that exist
        named = await points.having("id", list(dict.fromkeys(where.ids)), owned(scope), fields=False)
        there, where = [among([str(record.id) for record in named])], replace(where, ids=None if named else ())
    found = conditions(scope, where, now)
    if found is None:
        return None
    found += there
    nested = undecided(where)
    if not (nested or where.keywords):
        return found
    pages = points.pages(all_of(*found), fields=_READ)
    held = [(str(record.id), record.payload or {}) async for page in pages for record in page]
    matching = [
        point
        for point, payload in held
        if has_keyword(payload["text"], where.keywords) and matches_all(json.loads(payload["data"]), nested)
    ]
    return [*found, among(matching)] if matching else None
