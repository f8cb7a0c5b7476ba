"""The people who have memories, for the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from memory_core.app.serve.callers import THE_OPERATOR
from memory_core.app.serve.conditions import query_of
from memory_core.app.serve.visits import Visit, visit
from memory_core.models import Scope, Stats

try:
    from fastapi import APIRouter, Depends, HTTPException, Query, Response
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

PAGE: Final = 100
"""People on a page, whose memories are counted."""

routes = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with memories."""

    owner: Scope
    counts: Stats


@routes.get("/owners")
async def people(
    found: Annotated[Visit, Depends(visit)],
    starting: Annotated[str, Query()] = "",
    start: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """The people whose name begins so; `start` is how many of them stand on the pages before."""
    if found.caller != THE_OPERATOR:
        raise HTTPException(404, "there is no such page")
    every = await found.served.memory.operator().owners()
    named = [owner for owner in every if _begins(owner, starting)]
    end = start + PAGE
    more = query_of([("starting", starting), ("start", str(end))]) if len(named) > end else None
    people = await _counted(found, named[start:end])
    return found.drawn("people.html", people=people, count=len(named), more=more, starting=starting)


def _begins(owner: Scope, starting: str) -> bool:
    user = owner.user or ""
    return user.startswith(starting) or f"{owner.app}/{user}".startswith(starting)


async def _counted(found: Visit, owners: Sequence[Scope]) -> list[Person]:
    operator = found.served.memory.operator()
    counts = await asyncio.gather(*(operator.handle(owner).stats() for owner in owners))
    return [Person(owner, each) for owner, each in zip(owners, counts, strict=True)]
