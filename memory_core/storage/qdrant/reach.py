"""Conditions in a form that a server can answer; the others are evaluated on the client first."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memory_core.models import Scope
from memory_core.storage.qdrant.codec import NAMES, key, to_record
from memory_core.storage.qdrant.collection import NAMED
from memory_core.storage.qdrant.owners import Owner
from memory_core.storage.qdrant.where import Clause, all_of, among, conditions, owned, undecided
from memory_core.where.meaning import has_keyword, matcher
from memory_core.where.value import Where


async def reachable(owner: Owner, scope: Scope, where: Where, now: datetime | None) -> list[Clause] | None:
    """The conditions for a record in `scope`; `None` if no record satisfies them.

    Keywords and the conditions that `undecided` returns are evaluated here, on all records that satisfy the rest; the
    result then names the points.

    Args:
        now: Excludes records that have expired by then; `None` includes them.
    """
    points = owner.points
    there: list[Clause] = []
    if where.ids is not None and len(where.ids) > NAMED:  # more than fit into a condition: use the existing points
        keys = [key("id", one) for one in dict.fromkeys(where.ids)]
        named = await points.having("_keys", keys, owned(owner.key), fields=False)
        there, where = [among([str(record.id) for record in named])], replace(where, ids=None if named else ())
    found = conditions(owner.key, scope, where, now)
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
