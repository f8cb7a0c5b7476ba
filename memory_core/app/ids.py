"""Ids that a person types: the whole id of a memory, or a part of it that no other has."""

from __future__ import annotations

from typing import Final

from memory_core.errors import InvalidInputError
from memory_core.handle import BoundMemory
from memory_core.models import STATES
from memory_core.values.limits import MAX_LIMIT
from memory_core.where.where import Where

SHORTEST: Final = 4
"""Minimum number of characters of a part."""
_NAMED: Final = 3
"""Maximum number of ids in an error."""


async def whole_id(owner: BoundMemory, given: str) -> str:
    """The id of the owner's memory that begins or ends with what is given; what is given if no id does.

    Raises:
        InvalidInputError: Several do.
    """
    if len(given) < SHORTEST or await owner.get(given) is not None:
        return given
    found, cursor = list[str](), None
    while True:
        page = await owner.list(where=Where(states=STATES), limit=MAX_LIMIT, cursor=cursor)
        found += [each.id for each in page.records if each.id.startswith(given) or each.id.endswith(given)]
        if (cursor := page.cursor) is None:
            break
    if len(found) > 1:
        some = ", ".join(found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        raise InvalidInputError(f"{len(found)} memories have {given!r} in their ids: {some}; give more of one id")
    return found[0] if found else given
