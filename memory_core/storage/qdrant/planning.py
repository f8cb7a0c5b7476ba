"""The plan of adding records, given what is stored: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_core.errors import DuplicateIdError
from memory_core.models import MemoryRecord, Scope
from memory_core.storage.qdrant.codec import Names, Stored
from memory_core.storage.shared.batches import insist_on_reach, is_searched_differently, merged, replacing, updated
from memory_core.storage.shared.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Survey:
    """What is stored where the records to be added belong."""

    by_id: Mapping[str, Stored]
    by_point: Mapping[str, Stored]
    forgotten: frozenset[str]
    """Points of forgotten source keys."""
    vacant: Mapping[str, str]
    """The state of points that are free although they exist: of markers, expired records and erased ones."""
    expired: Sequence[Stored]
    """Expired records at other points, whose ids are needed."""


@dataclass(frozen=True, slots=True)
class Update:
    """A stored record that is updated."""

    known: Stored
    record: MemoryRecord

    @property
    def is_searched_differently(self) -> bool:
        """Whether terms, vectors or the order of turns change."""
        return is_searched_differently(self.known.record, self.record)


@dataclass(frozen=True, slots=True)
class Plan:
    """New records, changed ones, and the result for the caller."""

    new: Sequence[Prepared]
    updates: Sequence[Update]
    results: Sequence[MemoryRecord | int | None]
    """A number means the record at that position of `new`."""

    def records(self) -> list[MemoryRecord | None]:
        """The result for the caller."""
        return [self.new[item].record if isinstance(item, int) else item for item in self.results]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the writes of one call for one owner."""

    scope: Scope
    names: Names
    write: str
    """The token of the call; what has it was stored by an earlier attempt."""
    now: datetime

    def add(self, batch: Sequence[Prepared], seen: Survey) -> Plan:
        """Sort records into new, known and forgotten ones.

        Raises:
            DuplicateIdError: An id is taken, or a source key belongs to a record outside of the scope.
        """
        new: list[Prepared] = []
        position_of: dict[str, int] = {}  # in `new`, by source key
        updates: dict[str, Update] = {}  # by point
        results: list[MemoryRecord | int | None] = []
        for item in batch:
            source, point = item.record.source_key, self.names.point_of(item.record)
            known = seen.by_point.get(point)
            if known is not None and (source is not None or known.born == self.write):
                insist_on_reach(self.scope, known.record)
                record = updates[point].record if point in updates else known.record
                newer = record if self.write in known.writes else updated(record, item.record)
                if newer is not record:
                    updates[point] = Update(known, newer)
                results.append(newer)
            elif source is not None and source in position_of:
                new[position_of[source]] = merged(new[position_of[source]], item)
                results.append(position_of[source])
            elif point in seen.forgotten:
                results.append(None)
            else:
                if source is not None:
                    position_of[source] = len(new)
                results.append(len(new))
                new.append(item)
        self._insist_on_new_ids(new, seen)
        return Plan(new, list(updates.values()), results)

    def put(self, batch: Sequence[Prepared], seen: Survey) -> Plan:
        """Sort items into new ones and replacements of stored records.

        Raises:
            DuplicateIdError: An id is taken, or a source key belongs to a record outside of the scope.
        """
        new: list[Prepared] = []
        updates: list[Update] = []
        stored: dict[str, MemoryRecord | int] = {}
        for point, item in {self.names.point_of(item.record): item for item in batch}.items():
            known = seen.by_point.get(point)
            if known is None:
                stored[point] = len(new)
                new.append(item)
                continue
            insist_on_reach(self.scope, known.record)
            if self.write in known.writes:
                stored[point] = known.record
            else:
                updates.append(Update(known, replacing(known.record, item.record)))
                stored[point] = updates[-1].record
        self._insist_on_new_ids(new, seen)
        return Plan(new, updates, [stored[self.names.point_of(item.record)] for item in batch])

    def _insist_on_new_ids(self, new: Sequence[Prepared], seen: Survey) -> None:
        taken = {given for given, known in seen.by_id.items() if self.write not in known.writes}
        for item in new:
            given = item.record.id
            if given in taken:
                raise DuplicateIdError(f"there is a record with id {given!r} already; update it, or leave the id out")
            taken.add(given)


def has_expired(known: Stored, now: datetime) -> bool:
    """Whether a record does not exist any more for callers."""
    return known.record.expires_at is not None and known.record.expires_at <= now
