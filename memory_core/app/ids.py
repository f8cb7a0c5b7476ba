"""Ids that a person types: the whole id of a memory, or a part of one that this library made."""

from __future__ import annotations

import re
from typing import Final

from memory_core.errors import InvalidInputError, RecordNotFoundError
from memory_core.handle import BoundMemory
from memory_core.models import MemoryRecord
from memory_core.values.limits import MAX_LIMIT
from memory_core.where.where import ANY_STATE

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of ids that this library makes."""
SHORTEST: Final = 4
"""Minimum number of characters of a part."""
_NAMED: Final = 3
"""Maximum number of ids in an error."""


async def whole_id(owner: BoundMemory, given: str) -> str:
    """The id of the owner's memory that begins or ends with what is given; what is given if no id does.

    Only ids in the form of a UUID may be shortened. Others mean themselves: to forget `user-1`, which is gone, must not
    forget `user-12`.

    Raises:
        InvalidInputError: Several do.
    """
    if len(given) < SHORTEST or await owner.get(given) is not None:
        return given
    found, cursor = list[str](), None
    while True:
        page = await owner.list(where=ANY_STATE, limit=MAX_LIMIT, cursor=cursor)
        ids = (each.id for each in page.records if UUID.fullmatch(each.id))
        found += [each for each in ids if each.startswith(given) or each.endswith(given)]
        if (cursor := page.cursor) is None:
            break
    if len(found) > 1:
        some = ", ".join(found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        raise InvalidInputError(f"{len(found)} memories have {given!r} in their ids: {some}; give more of one id")
    return found[0] if found else given


async def record_of(owner: BoundMemory, given: str) -> MemoryRecord:
    """The owner's memory of `whole_id`.

    Raises:
        RecordNotFoundError: No memory has this id.
        InvalidInputError: As for `whole_id`.
    """
    record = await owner.get(await whole_id(owner, given))
    if record is None:
        raise RecordNotFoundError(f"{owner.scope.app}/{owner.scope.user} has no memory {given!r}, or it has expired")
    return record
