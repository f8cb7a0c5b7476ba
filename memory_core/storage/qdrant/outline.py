"""The plan of adding records, given what is stored: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_core.errors import DuplicateIdError
from memory_core.models import MemoryRecord, Scope
from memory_core.storage.qdrant.codec import Stored
from memory_core.storage.qdrant.turns import Place
from memory_core.storage.shared.batches import insist_on_reach, is_searched_differently, merged, replacing, updated
from memory_core.storage.shared.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Survey:
    """The stored records that matter for the records to be added."""

    by_id: Mapping[str, Stored]
    by_source: Mapping[str, Stored]
    forgotten: frozenset[str]
    """Source keys."""
    places: Mapping[str, Sequence[Place]]
    """Turns by session, from the one before the first to the one after the last record to be added."""

    def expired(self, now: datetime) -> list[Stored]:
        """The expired records whose ids or source keys the new records need."""
        found = {known.point: known for known in (*self.by_id.values(), *self.by_source.values())}
        return [known for known in found.values() if _has_expired(known, now)]

    def without_expired(self, now: datetime) -> Survey:
        """The survey after the expired records are deleted."""
        by_id = {given: known for given, known in self.by_id.items() if not _has_expired(known, now)}
        by_source = {source: known for source, known in self.by_source.items() if not _has_expired(known, now)}
        return replace(self, by_id=by_id, by_source=by_source)


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
class Outline:
    """The plan of an add: new records, changed ones, and the result for the caller."""

    new: Sequence[Prepared]
    updates: Sequence[Update]
    results: Sequence[MemoryRecord | int | None]
    """A number means the record at that position of `new`."""
    is_put: bool = False
    """Whether known records are replaced instead of updated."""

    def replacing(self, batch: Iterable[Prepared]) -> list[Prepared]:
        """The records of the batch that replace a record with another text."""
        if not self.is_put:
            return []
        latest = {item.record.source_key: item for item in batch}
        pairs = [(update.known.record, latest[update.record.source_key]) for update in self.updates]
        return [item for before, item in pairs if item.chunks and before.text != item.record.text]

    def records(self) -> list[MemoryRecord | None]:
        """The result for the caller."""
        return [self.new[item].record if isinstance(item, int) else item for item in self.results]


def outline(scope: Scope, batch: Sequence[Prepared], survey: Survey) -> Outline:
    """Sort records into new, known and forgotten ones.

    Raises:
        DuplicateIdError: An id is taken, or a source key belongs to a record outside of the scope.
    """
    new: list[Prepared] = []
    position_of: dict[str, int] = {}  # in `new`, by source key
    updates: dict[str, Update] = {}  # by point
    results: list[MemoryRecord | int | None] = []
    for item in batch:
        source = item.record.source_key
        known = None if source is None else survey.by_source.get(source)
        if known is not None:
            insist_on_reach(scope, known.record)
            record = updates[known.point].record if known.point in updates else known.record
            newer = updated(record, item.record)
            if newer is not record:
                updates[known.point] = Update(known, newer)
            results.append(newer)
        elif source is not None and source in position_of:
            position = position_of[source]
            new[position] = merged(new[position], item)
            results.append(position)
        elif source is not None and source in survey.forgotten:
            results.append(None)
        else:
            if source is not None:
                position_of[source] = len(new)
            results.append(len(new))
            new.append(item)
    _insist_on_new_ids(new, survey)
    return Outline(new, list(updates.values()), results)


def outline_of_put(scope: Scope, batch: Sequence[Prepared], survey: Survey) -> Outline:
    """Sort items into new ones and replacements of stored records.

    Raises:
        DuplicateIdError: An id is taken, or a source key belongs to a record outside of the scope.
    """
    new: list[Prepared] = []
    updates: list[Update] = []
    stored: dict[str, MemoryRecord | int] = {}
    for source, item in {item.record.source_key or "": item for item in batch}.items():
        known = survey.by_source.get(source)
        if known is None:
            stored[source] = len(new)
            new.append(item)
        else:
            insist_on_reach(scope, known.record)
            updates.append(Update(known, replacing(known.record, item.record)))
            stored[source] = updates[-1].record
    _insist_on_new_ids(new, survey)
    return Outline(new, updates, [stored[item.record.source_key or ""] for item in batch], is_put=True)


def predecessors(stored: Iterable[Place], new: Iterable[Place]) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The point before each new turn, and the new point before each stored turn that had another one.

    Args:
        stored: Turns of one session, including those next to the new ones.
        new: Turns to be added to them.
    """
    joining = {place.point for place in new}
    before: dict[str, str | None] = {}
    changed: dict[str, str | None] = {}
    last: str | None = None
    for place in sorted({*stored, *new}):
        if place.point in joining:
            before[place.point] = last
        elif last in joining:
            changed[place.point] = last
        last = place.point
    return before, changed


def new_predecessors(stored: Iterable[Place], gone: Iterable[str]) -> dict[str, str | None]:
    """The stored turns whose predecessor is deleted, each with its new predecessor.

    Args:
        stored: Turns of one session, including those next to the deleted ones.
        gone: Points to be deleted.
    """
    going = set(gone)
    left: dict[str, str | None] = {}
    last: str | None = None
    follows_a_gap = False
    for place in sorted(stored):
        if place.point in going:
            follows_a_gap = True
            continue
        if follows_a_gap:
            left[place.point] = last
        last, follows_a_gap = place.point, False
    return left


def moves(update: Update) -> bool:
    """Whether the position of a record among the turns of a session changes."""
    before, after = update.known.record, update.record
    return (before.session, before.occurred_at) != (after.session, after.occurred_at)


def says_the_same(before: MemoryRecord, after: MemoryRecord) -> bool:
    """Whether two records outside of any session have the same vectors."""
    return (before.text, before.session, after.session) == (after.text, None, None)


def _has_expired(known: Stored, now: datetime) -> bool:
    return known.record.expires_at is not None and known.record.expires_at <= now


def _insist_on_new_ids(new: Sequence[Prepared], survey: Survey) -> None:
    seen: set[str] = set()
    for item in new:
        given = item.record.id
        if given in seen or given in survey.by_id:
            raise DuplicateIdError(f"there is a record with id {given!r} already; update it, or leave the id out")
        seen.add(given)
