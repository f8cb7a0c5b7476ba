"""Plan the steps of maintenance from the records of an owner: pure functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from memory_core.concurrency.threads import yield_now
from memory_core.lifecycle.deriving import compacted, is_note
from memory_core.lifecycle.fading import fading, outdated
from memory_core.lifecycle.managing import is_same_speaker
from memory_core.lifecycle.sameness import LONGEST, alike, statement_of
from memory_core.lifecycle.values import CORRECTS, Change, MaintainPolicy, Reason, Step
from memory_core.models import MemoryRecord, Patch
from memory_core.records.draft_to_record import patched
from memory_core.records.undone import NOTHING, Undone
from memory_core.retrieval.equal_statements import (
    is_statement,
    kept_and_gone,
    likeness,
    linkable,
    linked,
    merged,
    start_of,
)
from memory_core.retrieval.equal_texts import equal_form
from memory_core.values.unset import UNSET


def plan(
    records: Iterable[MemoryRecord], policy: MaintainPolicy, now: datetime, undone: Undone = NOTHING
) -> list[Step]:
    """All steps for an owner's active records, in the order in which to apply them.

    Args:
        records: Records in all states; compacted ones still show how words are spelt.
        now: The time at which the strength of records is computed.
        undone: Steps that were taken back; they are not planned again.
    """
    everything = sorted((record for record in records if not is_note(record)), key=_age)
    active = [record for record in everything if record.state == "active"]
    steps: list[Step] = []
    if policy.duplicates != "keep":
        steps += _merges(_statements(active), undone)
    left = _after(steps, active) if policy.duplicates == "merge" else active
    if policy.alike != "keep":
        resembling = list(_resembling(_statements(left), _spelt(everything), undone))
        left = _after(resembling, left) if policy.alike == "merge" else left
        steps += resembling
    if policy.contradictions != "keep":
        corrected = list(_supersessions(_statements(left), undone))
        if policy.contradictions == "supersede":
            left = _after([step for step in corrected if step.reason == "correction"], left)
        steps += corrected
    if policy.compact_after is not None:
        replaced = list(compacted(left, policy.compact_after, now, undone))
        left = _after(replaced, left)
        steps += replaced
    steps += fading(left, policy, now, undone)
    if policy.delete_after is not None:
        steps += outdated(everything, policy.delete_after, now)
    return steps


def _statements(records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    return [record for record in records if is_statement(record)]


def _spelt(records: Iterable[MemoryRecord]) -> Counter[str]:
    """For each word, the number of different statements with it."""
    texts = {record.text for record in _statements(records) if len(record.text) <= LONGEST}
    found = Counter[str]()
    for text in texts:
        yield_now()
        found.update(set(statement_of(text).words))
    return found


def _after(steps: Iterable[Step], records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """The active records after the steps."""
    now = {record.id: record for record in records}
    for change in (change for step in steps for change in step.changes):
        now[change.id] = patched(now[change.id], change.patch, now[change.id].updated_at)
    return sorted((record for record in now.values() if record.state == "active"), key=_age)


def _merges(records: Sequence[MemoryRecord], undone: Undone) -> Iterator[Step]:
    """A step for the records with equal texts; more, if there are more of them than a record has links."""
    for same in _by(records, lambda record: (likeness(record), equal_form(record.text))):
        left = same
        while len(left) > 1:
            kept, gone = kept_and_gone(left, undone)
            if gone:
                yield _merge("duplicate", kept, gone)
            ids = {kept.id, *(record.id for record in gone)}
            left = [record for record in left if record.id not in ids]


def _resembling(records: Sequence[MemoryRecord], counts: Mapping[str, int], undone: Undone) -> Iterator[Step]:
    """A step for each record whose text looks like those of others; no record is in two steps. Of records with equal
    texts one is compared."""
    for group in _by(records, likeness):
        different = list({equal_form(record.text): record for record in reversed(group)}.values())
        near: dict[str, list[MemoryRecord]] = defaultdict(list)
        for one, other in alike([record.text for record in different]):
            pair = different[one], different[other]
            if not undone.has("duplicate", pair[0].id, pair[1].id):
                near[pair[0].id].append(pair[1])
                near[pair[1].id].append(pair[0])
        taken: set[str] = set()
        for kept in sorted((record for record in different if record.id in near), key=_by_spelling(counts)):
            gone = linkable(kept, [record for record in near[kept.id] if record.id not in taken])
            if gone and kept.id not in taken:
                taken |= {kept.id, *(record.id for record in gone)}
                yield _merge("alike", kept, gone)


def _by_spelling(counts: Mapping[str, int]) -> Callable[[MemoryRecord], tuple[int, datetime, str]]:
    """The order in which records stay: those with the more common words first, the oldest among equals."""

    def rank(record: MemoryRecord) -> tuple[int, datetime, str]:
        rarest = min((counts.get(word, 0) for word in statement_of(record.text).words), default=0)
        return (-rarest, start_of(record), record.id)

    return rank


def _merge(reason: Reason, kept: MemoryRecord, others: Iterable[MemoryRecord]) -> Step:
    gone = sorted(others, key=lambda record: record.id)
    retired = Patch(state="compacted")
    changes = [
        *_change(kept, merged(kept, gone)),
        *(change for record in gone for change in _change(record, retired)),
    ]
    return Step(reason=reason, kept=kept.text, gone=tuple(record.text for record in gone), changes=tuple(changes))


def _supersessions(records: Sequence[MemoryRecord], undone: Undone) -> Iterator[Step]:
    """A step for each chain of facts of one speaker of which each corrects the one before it; and one for each fact of
    another speaker that is contradicted.

    Args:
        records: Statements, oldest first.
    """
    by_id = {record.id: record for record in records}
    now = by_id | {link.id: record for record in records for link in record.links if link.relation == "confirmed_by"}
    successors: dict[str, str] = {}
    contradicted: dict[str, str] = {}
    for new in records:
        old = now.get(str(new.data.get(CORRECTS)))
        if old is not None and start_of(old) < start_of(new) and not undone.has("correction", old.id, new.id):
            (successors if is_same_speaker(new, old) else contradicted).setdefault(old.id, new.id)
    chains: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.id in successors:
            last = record.id
            while last in successors:
                last = successors[last]
            chains[last].append(record.id)
    for last, row in chains.items():
        yield _supersession("correction", [*row, last], successors, by_id)
    for old_id, new_id in contradicted.items():
        if old_id not in successors:
            yield _supersession("contradiction", [old_id, new_id], contradicted, by_id)


def _supersession(
    reason: Reason, row: Sequence[str], successors: Mapping[str, str], by_id: Mapping[str, MemoryRecord]
) -> Step:
    """The step for a chain of corrections, with the current statement last.

    The oldest statement is archived first, and only after its successor links to it: after an interruption at any
    point, the next plan finds the rest of the chain.
    """
    now = {each: by_id[each] for each in row}
    changes: list[Change] = []
    for old in row[:-1]:
        new = successors[old]
        for each, patch in (
            (new, Patch(links=linked(now[new], "supersedes", [now[old]]))),
            (old, Patch(state="archived", valid_to=start_of(now[new]))),
        ):
            changes += _change(now[each], patch)
            now[each] = patched(now[each], patch, now[each].updated_at)
    gone = tuple(by_id[each].text for each in row[:-1])
    return Step(reason=reason, kept=by_id[row[-1]].text, gone=gone, changes=tuple(changes))


def _change(record: MemoryRecord, patch: Patch) -> list[Change]:
    """The change, or an empty list if the patch changes nothing."""
    if patched(record, patch, record.updated_at) is record:
        return []
    names = [each.name for each in fields(patch) if getattr(patch, each.name) is not UNSET]
    undo = Patch(**{name: getattr(record, name) for name in names})
    return [Change(id=record.id, version=record.version, patch=patch, undo=undo)]


def _by(records: Iterable[MemoryRecord], key: Callable[[MemoryRecord], Hashable]) -> Iterable[list[MemoryRecord]]:
    groups: dict[Hashable, list[MemoryRecord]] = defaultdict(list)
    for record in records:
        yield_now()
        groups[key(record)].append(record)
    return groups.values()


def _age(record: MemoryRecord) -> tuple[datetime, datetime, str]:
    return (start_of(record), record.created_at, record.id)
