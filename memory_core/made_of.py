"""Read what was made of the words of records, which goes when they are deleted; and what a record was made of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from memory_core.every_record import Lists, every_record
from memory_core.models import DERIVING, Link, MemoryRecord
from memory_core.where.where import ANY_STATE

_FEW: Final = 20
"""So many records are asked for what was made of each; for more, all records are read once."""


async def made_of(handle: Lists, ids: Collection[str]) -> list[MemoryRecord]:
    """The records that were made of the words of these, of what was made of them, and so on.

    Args:
        handle: Of the whole owner: what was made of the words of a session may be in another one, or in none.
        ids: At least one of the records; the answer has other records only.
    """
    found: dict[str, MemoryRecord] = {}
    latest = set(ids)
    while latest:
        made = [record for record in await _made_of_those(handle, latest) if record.id not in ids]
        latest = {record.id for record in made}.difference(found)
        found |= {record.id: record for record in made}
    return sorted(found.values(), key=lambda record: (record.occurred_at, record.id))


async def sources_of(handle: Lists, record: MemoryRecord) -> list[MemoryRecord]:
    """The records whose words a record was made of, oldest first; without those that have expired."""
    ids = tuple(link.id for link in record.links if link.relation in DERIVING)
    return await every_record(handle, replace(ANY_STATE, ids=ids)) if ids else []


async def _made_of_those(handle: Lists, ids: Collection[str]) -> list[MemoryRecord]:
    if len(ids) <= _FEW:
        wheres = [replace(ANY_STATE, links=(Link(relation, id_),)) for id_ in ids for relation in DERIVING]
        return [record for where in wheres for record in await every_record(handle, where)]
    records = await every_record(handle, ANY_STATE)
    return [each for each in records if any(link.relation in DERIVING and link.id in ids for link in each.links)]
