"""Read what was made of the words of records, which goes when they are deleted; and what a record was made of.

There may be very many of them, and each may be long: a few are in memory at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from typing import Final

from memory_core.every_record import Lists
from memory_core.models import DERIVING, Link, MemoryRecord
from memory_core.short_page import each_record
from memory_core.where.where import ANY_STATE

_FEW: Final = 20
"""So many records are asked for what was made of each; for more, all records are read once."""


async def made_of(handle: Lists, ids: Collection[str]) -> Mapping[str, int]:
    """The records that were made of the words of these, of what was made of them, and so on: their versions by id.

    Args:
        handle: Of the whole owner: what was made of the words of a session may be in another one, or in none.
        ids: At least one of the records; the answer has other records only.
    """
    found: dict[str, int] = {}
    latest = set(ids)
    while latest:
        made = {id_: version for id_, version in (await _made_of_those(handle, latest)).items() if id_ not in ids}
        latest = made.keys() - found
        found |= made
    return found


async def sources_of(handle: Lists, record: MemoryRecord) -> AsyncIterator[MemoryRecord]:
    """The records whose words a record was made of, oldest first; without those that have expired."""
    ids = tuple(link.id for link in record.links if link.relation in DERIVING)
    if ids:
        async for source in each_record(handle, replace(ANY_STATE, ids=ids)):
            yield source


async def _made_of_those(handle: Lists, ids: Collection[str]) -> Mapping[str, int]:
    if len(ids) <= _FEW:
        wheres = [replace(ANY_STATE, links=(Link(relation, id_),)) for id_ in ids for relation in DERIVING]
        return {each.id: each.version for where in wheres async for each in each_record(handle, where)}
    return {
        each.id: each.version
        async for each in each_record(handle, ANY_STATE)
        if any(link.relation in DERIVING and link.id in ids for link in each.links)
    }
