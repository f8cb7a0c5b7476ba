"""Take back what was said, and bring it back: records of a branch that a conversation has left, or is on again.

A record that was taken back is compacted, together with what was derived from it. It remembers its state, so that it is
as before if the conversation goes on from it again. See `docs/conversations.md`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from memory_core.errors import ConflictError, RecordNotFoundError
from memory_core.every_record import Lists, every_record
from memory_core.models import STATES, Json, Link, MemoryRecord, Patch, State
from memory_core.values.limits import MAX_LISTED
from memory_core.where.where import Where

TAKEN_BACK: Final = "taken_back"
"""Key in a record's data: the state that the record had before it was taken back."""
_AT_ONCE: Final = 50
"""Records that are changed at the same time; the store writes them together."""

Change = Callable[[MemoryRecord], Patch | None]
"""Makes the changes to a record from what it is now; `None` for nothing to change."""


class Changing(Lists, Protocol):
    """The methods of a handle that this module needs."""

    async def get(self, id: str) -> MemoryRecord | None: ...  # noqa: A002  (the record's own word)

    async def update(self, id: str, patch: Patch, *, expected_version: int | None = None) -> MemoryRecord: ...  # noqa: A002


@dataclass(frozen=True, slots=True)
class Changed:
    """A change that is due on a record."""

    record: MemoryRecord
    change: Change


async def take_back(handle: Changing, records: Iterable[MemoryRecord]) -> None:
    """Compact records and what was derived from them; those that were taken back already stay so."""
    await apply(handle, [Changed(record, taken_back) for record in await _with_derived(handle, records)])


async def bring_back(handle: Changing, records: Iterable[MemoryRecord]) -> None:
    """Give records that were taken back, and what was derived from them, the state that they had before."""
    await apply(handle, [Changed(record, brought_back) for record in await _with_derived(handle, records)])


async def take_back_derived(handle: Changing, records: Iterable[MemoryRecord]) -> None:
    """Take back what was derived from records whose text has changed."""
    sources = {record.id for record in records}
    await apply(handle, [Changed(record, taken_back) for record in await _derived(handle, sources)])


async def take_back_where(handle: Changing, where: Where) -> None:
    """`take_back` for every record that satisfies the conditions."""
    await take_back(handle, await every_record(handle, where))


def is_taken_back(record: MemoryRecord) -> bool:
    """Whether a record was taken back, and is out of sight: anybody may have written the key into its data."""
    return TAKEN_BACK in record.data and record.state != "active"


def taken_back(record: MemoryRecord) -> Patch | None:
    """The change that takes a record back. One that is archived is out of sight already."""
    if is_taken_back(record) or record.state == "archived":
        return None
    return Patch(state="compacted", data={**record.data, TAKEN_BACK: record.state})


def brought_back(record: MemoryRecord) -> Patch | None:
    """The change that brings a record back."""
    before = record.data.get(TAKEN_BACK)
    state: State = next((known for known in get_args(State) if known == before), "active")
    return Patch(state=state, data=untouched(record.data)) if is_taken_back(record) else None


def untouched(data: Mapping[str, Json]) -> dict[str, Json]:
    """The data of a record as if it had never been taken back."""
    return {name: value for name, value in data.items() if name != TAKEN_BACK}


async def apply(handle: Changing, changes: Iterable[Changed]) -> None:
    """Make changes; one that another caller makes at the same time is made on what that one has left."""
    due = list(changes)
    for start in range(0, len(due), _AT_ONCE):
        await asyncio.gather(*(_apply(handle, one) for one in due[start : start + _AT_ONCE]))


async def _apply(handle: Changing, due: Changed) -> None:
    record: MemoryRecord | None = due.record
    while record is not None and (patch := due.change(record)) is not None:
        with suppress(RecordNotFoundError):  # deleted meanwhile, which says more
            try:
                await handle.update(record.id, patch, expected_version=record.version)
            except ConflictError:
                record = await handle.get(record.id)
                continue
        return


async def _with_derived(handle: Changing, records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    found = {record.id: record for record in records}
    return [*found.values(), *await _derived(handle, found.keys())]


async def _derived(handle: Changing, sources: AbstractSet[str]) -> list[MemoryRecord]:
    """What was derived from nothing but the records with these ids, such as the facts that were extracted from them."""
    derived: dict[str, MemoryRecord] = {}
    for source in sources:
        page = await handle.list(where=Where(links=(Link("derived_from", source),), states=STATES), limit=MAX_LISTED)
        derived |= {record.id: record for record in page.records if _sources(record) <= sources}
    return list(derived.values())


def _sources(record: MemoryRecord) -> set[str]:
    return {link.id for link in record.links if link.relation == "derived_from"}
