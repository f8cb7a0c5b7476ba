"""Conditions in the form a server can answer, with what it cannot decide looked up first."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memory_core.models import Scope
from memory_core.storage.qdrant.codec import NAMES, to_record
from memory_core.storage.qdrant.collection import PAGE, Points
from memory_core.storage.qdrant.where import Clause, all_of, among, conditions, owned, undecided
from memory_core.where.meaning import has_keyword, matcher
from memory_core.where.value import Where


async def reachable(points: Points, scope: Scope, where: Where, now: datetime | None) -> list[Clause] | None:
    """What a record must satisfy to be seen through `scope`; `None` if none does.

    Keywords and what `undecided` names are decided here, on all records that satisfy the rest; what comes out names
    the points.

    Args:
        now: Records that have expired by then do not count; with `None` they do.
    """
    there: list[Clause] = []
    if where.ids is not None and len(where.ids) > PAGE:  # more than a condition may hold: the points that exist
        named = await points.having("id", list(dict.fromkeys(where.ids)), owned(scope), fields=False)
        there, where = [among([str(record.id) for record in named])], replace(where, ids=None if named else ())
    found = conditions(scope, where, now)
    if found is None:
        return None
    found += there
    tests = [matcher(condition) for condition in undecided(where)]
    if not (tests or where.keywords):
        return found
    matching: list[str] = []
    async for page in points.pages(all_of(*found), fields=NAMES):
        for point in page:
            record = to_record(point.payload or {})
            if has_keyword(record.text, where.keywords) and all(test(record) for test in tests):
                matching.append(str(point.id))
    return [*found, among(matching)] if matching else None
