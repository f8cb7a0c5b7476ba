"""The rules of `storage/rules/deriving.py`, on a store that changes one point at a time.

What a rule reads is fetched first, the rule decides, and what it changes is written. A crash in between leaves derived
records beside a source that has changed or gone; the next write that reaches them finishes it. Until then, readers see
what the rule says (`as_sources_are`): the marker of a deleted source names it by a hash, for as long as it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_core.models import DERIVING, RELATIONS, Link, MemoryRecord, Patch, Relation
from memory_core.storage.qdrant.codec import Stored, key, to_stored
from memory_core.storage.qdrant.owners import Owner
from memory_core.storage.qdrant.where import empty, owned, same
from memory_core.storage.qdrant.writing import Changes
from memory_core.storage.rules import deriving
from memory_core.storage.rules.deriving import is_within, sources_of
from memory_core.storage.rules.rows import Head, Row


@dataclass(slots=True)
class Fetched:
    """`LinkedRows` that were fetched before."""

    stored: dict[str, Stored] = field(default_factory=dict[str, Stored])
    """By id."""
    changed: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])

    def take(self, found: Iterable[Stored]) -> set[str]:
        """Add records; returns the ids of those that are new."""
        new = {item.record.id: item for item in found if item.record.id not in self.stored}
        self.stored |= new
        return set(new)

    def with_ids(self, ids: Sequence[str]) -> list[Row]:
        """See `LinkedRows`."""
        return [self._row(id_) for id_ in ids if id_ in self.stored]

    def linking_to(self, ids: Collection[str]) -> list[Row]:
        """See `LinkedRows`."""
        rows = map(self._row, self.stored)
        return [row for row in rows if any(link.id in ids for link in row.record.links)]

    def overwrite(self, changed: Sequence[tuple[Row, MemoryRecord]]) -> None:
        """See `LinkedRows`."""
        self.changed |= {row.record.id: record for row, record in changed}

    async def carry_out(self, owner: Owner) -> None:
        """Write what a rule has changed."""
        changes = Changes(owner)
        for id_, record in self.changed.items():
            changes.overwrite(self.stored[id_], record)
        await changes.carry_out()

    def _row(self, id_: str) -> Row:
        stored = self.stored[id_]
        return Row(stored.seq, self.changed.get(id_, stored.record))


async def insist_on_sources(owner: Owner, new: Sequence[MemoryRecord], known: Collection[Link] = ()) -> None:
    """See `rules.deriving.insist_on_sources`."""
    if rows := await _sources_among(owner, new):
        deriving.insist_on_sources(rows, new, known)


async def restated(owner: Owner, before: MemoryRecord, after: MemoryRecord) -> MemoryRecord:
    """See `rules.deriving.restated`."""
    return deriving.restated(await _sources_among(owner, [after]) or Fetched(), before, after)


async def as_changed(owner: Owner, before: MemoryRecord, after: MemoryRecord, patch: Patch) -> MemoryRecord:
    """See `rules.deriving.as_changed`."""
    return deriving.as_changed(await _sources_among(owner, [after]) or Fetched(), before, after, patch)


async def _sources_among(owner: Owner, records: Iterable[MemoryRecord]) -> Fetched | None:
    """The sources of some records; `None` if they name none."""
    if not (wanted := {link.id for record in records for link in sources_of(record.links)}):
        return None
    rows = Fetched()
    rows.take(await _with_ids(owner, wanted))
    return rows


async def made_of(owner: Owner, ids: Collection[str]) -> list[Stored]:
    """See `rules.deriving.made_of`."""
    rows, latest = Fetched(), set(ids)
    while latest:
        latest = rows.take(await _linking_to(owner, latest, DERIVING)).difference(ids)
    return [item for item in rows.stored.values() if item.record.id not in ids]


async def outdated(owner: Owner, going: Sequence[Stored]) -> list[Stored]:
    """See `rules.deriving.outdated`, with what was made of it."""
    ids, rows = {item.record.id for item in going}, Fetched()
    rows.take([*going, *(await _linking_to(owner, ids, DERIVING) if ids else ())])
    hidden = {row.record.id for row in deriving.outdated(rows, ids)}
    return [*(rows.stored[id_] for id_ in hidden), *(await made_of(owner, hidden) if hidden else ())]


async def made_within(owner: Owner) -> list[Stored]:
    """See `rules.deleting.erase`: what was made of the words of the scope."""
    scope = owner.scope
    named = {
        "made_of_agent": scope.agent,
        "made_of_session": scope.session,
        "made_of_collection": scope.collection,
    }
    keys = [key(name, value) for name, value in named.items() if value is not None]
    if not keys:
        return []
    found = await owner.records(*(same("_keys", each) for each in keys))
    return [item for item in found if any(is_within(link, scope) for link in sources_of(item.record.links))]


async def follow(owner: Owner, after: MemoryRecord) -> None:
    """See `rules.deriving.follow`; any number of times."""
    rows = Fetched()
    rows.take(await made_of(owner, {after.id}))
    if rows.stored:
        made = set(rows.stored)
        named = {link.id for item in rows.stored.values() for link in item.record.links}
        rows.take(await _with_ids(owner, named))
        rows.take(await _linking_to(owner, named, ("summarizes", "confirmed_by")))
        rows.take(await _linking_to(owner, made, ("made", "supersedes")))
        deriving.follow(rows, replace(after, rev=0), after)
        await rows.carry_out(owner)


async def uncover(owner: Owner, before: MemoryRecord, after: MemoryRecord) -> None:
    """See `rules.deriving.uncover`; any number of times."""
    turns = {link.id for link in before.links if link.relation == "summarizes"}
    if not turns:
        return
    rows = Fetched()
    rows.take([*await _with_ids(owner, turns), *await _linking_to(owner, turns, ("summarizes",))])
    deriving.uncover(rows, before, after)
    await rows.carry_out(owner)


async def settle(owner: Owner, changed: Sequence[MemoryRecord], now: datetime) -> None:
    """Leave records whose sources have changed while they were written, or show them again."""
    if rows := await _sources_among(owner, changed):
        rows.take(await _with_ids(owner, {one.id for one in changed}))
        for row in rows.with_ids([one.id for one in changed]):
            after = deriving.as_sources_are(rows, row.record, row.record)
            if after is not row.record:
                rows.overwrite([(row, replace(after, updated_at=now, version=after.version + 1))])
        await rows.carry_out(owner)


async def pass_on(owner: Owner, going: Sequence[Stored], now: datetime) -> list[Stored]:
    """See `rules.deriving.pass_on`, with what was made of what it returns."""
    made = {item.record.id for item in going if sources_of(item.record.links)}
    if not made:
        return []
    rows = Fetched()
    rows.take(await _linking_to(owner, made, DERIVING))
    too_many = {row.record.id for row in deriving.pass_on(rows, [_head(item) for item in going], now)}
    await rows.carry_out(owner)
    return [*(rows.stored[id_] for id_ in too_many), *(await made_of(owner, too_many) if too_many else ())]


async def give_back(owner: Owner, gone: Sequence[Stored], derived: Collection[str], now: datetime) -> None:
    """See `rules.deriving.give_back`, `say_again` for those that went with a source, by id, and `stay_read` for the
    others; any number of times."""
    made = [item for item in gone if sources_of(item.record.links)]
    if not made:
        return
    rows, ids = Fetched(), {item.record.id for item in gone}
    linked = {link.id for item in made for link in item.record.links}
    rows.take(await _with_ids(owner, linked - ids))
    rows.take(await _linking_to(owner, linked | ids, RELATIONS))
    heads = [_head(item) for item in made]
    deriving.stay_read(rows, [head for head in heads if head.id not in derived], now)
    deriving.say_again(rows, [head for head in heads if head.id in derived], now)
    deriving.give_back(rows, heads, now)
    await rows.carry_out(owner)


async def as_sources_are(owners: Sequence[Owner], found: Sequence[Stored], left: bool | None) -> list[Stored]:  # noqa: FBT001
    """Records as a reader sees them, whatever a writer has not finished: what was made of the words of a deleted record
    is gone, and what was made of those of one that was left or has changed is left.

    Args:
        left: As in `Where`.
    """
    if not any(sources_of(item.record.links) for item in found):
        return list(found)
    seen: list[Stored] = []
    sources = {
        owner.key: await _all_sources(owner, [one for one in found if one.owner == owner.key]) for owner in owners
    }
    for item in found:
        state = sources[item.owner].state_of(item.record) if item.owner in sources else None
        if state == "left" and not item.record.left:
            item = replace(item, record=replace(item.record, left=True))  # noqa: PLW2901
        if state != "gone" and (left is None or item.record.left is left):
            seen.append(item)
    return seen


@dataclass(slots=True)
class _Sources:
    """The sources of some records, their sources, and so on."""

    records: dict[str, MemoryRecord]
    gone: Collection[str]
    """The ids of those that were deleted."""

    def state_of(self, record: MemoryRecord, above: tuple[str, ...] = ()) -> str | None:
        """The state that a record shares with its sources: `gone` or `left`; `None` if it holds."""
        states = {self._through(link, (*above, record.id)) for link in sources_of(record.links) if link.id not in above}
        return next((state for state in ("gone", "left") if state in states), None)

    def _through(self, link: Link, above: tuple[str, ...]) -> str | None:
        source = self.records.get(link.id)
        if source is None:
            return "gone" if link.id in self.gone else None  # it may have expired, or stand outside
        if (state := self.state_of(source, above)) is not None:
            return state
        return None if deriving.holds(source, link) else "left"


async def _all_sources(owner: Owner, found: Sequence[Stored]) -> _Sources:
    records: dict[str, MemoryRecord] = {}
    asked: set[str] = set()
    while wanted := _sources(found) - asked:
        found = await _with_ids(owner, wanted)
        asked |= wanted
        records |= {item.record.id: item.record for item in found}
    names = {owner.access.names.gone(owner.scope, one): one for one in asked.difference(records)}
    found_markers = await owner.points.having("_keys", sorted(names), empty("_owner"), fields=False) if names else []
    markers = await owner.points.read([each.id for each in found_markers], fields=["_keys"]) if found_markers else []
    return _Sources(records, {names[marker] for each in markers for marker in each.payload["_keys"] if marker in names})


def _sources(found: Iterable[Stored]) -> set[str]:
    return {link.id for item in found for link in sources_of(item.record.links)}


def _head(item: Stored) -> Head:
    record = item.record
    return Head(item.seq, record.id, record.source_key, record.version, record.links)


async def _with_ids(owner: Owner, ids: Collection[str]) -> list[Stored]:
    found = await owner.points.having("_keys", [key("id", one) for one in sorted(ids)], owned(owner.key))
    return [to_stored(point) for point in found]


async def _linking_to(owner: Owner, ids: Collection[str], relations: Sequence[Relation]) -> list[Stored]:
    keys = [key("links", f"{relation}:{one}") for one in sorted(ids) for relation in relations]
    found = await owner.points.having("_keys", keys, owned(owner.key))
    return [to_stored(point) for point in {point.id: point for point in found}.values()]
