"""Plan the steps of maintenance from the records of an owner: pure functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from memory_core.checks import MAX_LINKS, MAX_TAGS
from memory_core.draft_to_record import patched
from memory_core.json_values import UNSET
from memory_core.lifecycle.corrections import corrections
from memory_core.lifecycle.deriving import compacted, is_by_model, is_note, is_turn
from memory_core.lifecycle.fading import fading, outdated
from memory_core.lifecycle.sameness import groups_of_same, statement_of
from memory_core.lifecycle.values import Change, MaintainPolicy, Step
from memory_core.models import Link, MemoryRecord, Patch, Relation


def is_statement(record: MemoryRecord) -> bool:
    """Whether a record is a statement: neither a turn of a conversation nor a step nor a summary."""
    documents = is_turn(record) or record.kind in {"conversation_turn", "step"} or record.tier == "summary"
    return not documents and bool(record.text.strip())


def plan(records: Iterable[MemoryRecord], policy: MaintainPolicy, now: datetime) -> list[Step]:
    """All steps for an owner's active records, in the order in which to apply them.

    Args:
        records: Records in all states; compacted ones still show how words are spelt.
        now: The time at which the strength of records is computed.
    """
    everything = sorted((record for record in records if not is_note(record)), key=_age)
    texts = {record.text for record in everything if is_statement(record)}
    counts = Counter(word for text in texts for word in set(statement_of(text).words))
    active = [record for record in everything if record.state == "active"]
    steps = [] if policy.duplicates == "keep" else list(_merges(list(filter(is_statement, active)), counts))
    left = _after(steps, active) if policy.duplicates == "merge" else active
    if policy.contradictions != "keep":
        corrected = list(_supersessions([each for each in left if is_statement(each) and not is_by_model(each)]))
        left = _after(corrected, left) if policy.contradictions == "supersede" else left
        steps += corrected
    if policy.compact_after is not None:
        replaced = list(compacted(left, policy.compact_after, now))
        left = _after(replaced, left)
        steps += replaced
    steps += fading(left, policy, now)
    if policy.delete_after is not None:
        steps += outdated(everything, policy.delete_after, now)
    return steps


def merge_of(one: MemoryRecord, other: MemoryRecord) -> Step | None:
    """The step that merges two active records, if they are of one kind and say the same."""
    if not (is_statement(one) and is_statement(other) and _likeness(one) == _likeness(other)):
        return None
    if not groups_of_same([one.text, other.text]):
        return None
    counts = Counter(word for text in (one.text, other.text) for word in set(statement_of(text).words))
    kept = _best([one, other], counts)
    gone = _linkable(kept, [other if kept is one else one])
    return _merge(kept, gone) if gone else None


def _after(steps: Iterable[Step], records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """The active records after the steps."""
    now = {record.id: record for record in records}
    for change in (change for step in steps for change in step.changes):
        now[change.id] = patched(now[change.id], change.patch, now[change.id].updated_at)
    return sorted((record for record in now.values() if record.state == "active"), key=_age)


def _merges(records: Sequence[MemoryRecord], counts: Counter[str]) -> Iterable[Step]:
    for group in _by(records, _likeness):
        for places in groups_of_same([record.text for record in group], counts):
            left = [group[place] for place in places]
            while len(left) > 1:
                kept = _best(left, counts)
                left = [record for record in left if record.id != kept.id]
                gone = _linkable(kept, left)
                if gone:
                    yield _merge(kept, gone)
                ids = {record.id for record in gone}
                left = [record for record in left if record.id not in ids]


def _linkable(kept: MemoryRecord, others: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """The records that `kept` already links to, and as many more as it has room for."""
    known = {link.id for link in kept.links}
    linked = [record for record in others if record.id in known]
    return linked + [record for record in others if record.id not in known][: MAX_LINKS - len(known)]


def _likeness(record: MemoryRecord) -> Hashable:
    """The fields, beside the text, that must be equal in merged records."""
    provenance = (record.author, record.role, record.agent, record.collection)
    return (record.kind, record.tier, provenance, record.emotion, record.expires_at, record.valid_to, _data_key(record))


def _data_key(record: MemoryRecord) -> Hashable:
    return repr(sorted(record.data.items())) if record.data else ""


def _best(same: Sequence[MemoryRecord], counts: Counter[str]) -> MemoryRecord:
    """The record that stays: one that already replaces another, otherwise the best spelt, otherwise the oldest."""
    ids = {record.id for record in same}

    def rank(record: MemoryRecord) -> tuple[bool, int, datetime, str]:
        has_begun = any(link.relation == "summarizes" and link.id in ids for link in record.links)
        rarest = min((counts[word] for word in statement_of(record.text).words), default=0)
        return (not has_begun, -rarest, *_age(record)[:1], record.id)

    return min(same, key=rank)


def _merge(kept: MemoryRecord, others: Iterable[MemoryRecord]) -> Step:
    gone = sorted(others, key=lambda record: record.id)
    same = [kept, *gone]
    start = min(map(_start, same))
    wanted = Patch(
        tags=tuple(dict.fromkeys(tag for record in same for tag in record.tags))[:MAX_TAGS],
        importance=max(record.importance for record in same),
        confidence=max(record.confidence for record in same),
        valid_from=UNSET if start == _start(kept) else start,
        links=_linked(kept, "summarizes", gone),
    )
    compacted = Patch(state="compacted")
    changes = [*_change(kept, wanted), *(change for record in gone for change in _change(record, compacted))]
    return Step(reason="duplicate", kept=kept.text, gone=tuple(record.text for record in gone), changes=tuple(changes))


def _supersessions(records: Sequence[MemoryRecord]) -> Iterable[Step]:
    for group in _by(records, lambda record: (record.author, record.role, record.collection)):
        successors = {
            old: new
            for old, new in corrections([record.text for record in group])
            if group[old].valid_to is None and _start(group[old]) < _start(group[new])
        }
        rows: dict[int, list[int]] = defaultdict(list)
        for old in sorted(successors):
            last = old
            while last in successors:
                last = successors[last]
            rows[last].append(old)
        for last, row in rows.items():
            yield _supersession([*row, last], successors, group)


def _supersession(row: Sequence[int], successors: Mapping[int, int], group: Sequence[MemoryRecord]) -> Step:
    """The step for a chain of corrections, with the current statement last.

    The oldest statement is archived first, and only after its successor links to it: after an interruption at any
    point, the next plan finds the rest of the chain.
    """
    now = {place: group[place] for place in row}
    changes: list[Change] = []
    for old in row[:-1]:
        new = successors[old]
        for place, patch in (
            (new, Patch(links=_linked(now[new], "supersedes", [now[old]]))),
            (old, Patch(state="archived", valid_to=_start(now[new]))),
        ):
            changes += _change(now[place], patch)
            now[place] = patched(now[place], patch, now[place].updated_at)
    gone = tuple(group[place].text for place in row[:-1])
    return Step(reason="correction", kept=group[row[-1]].text, gone=gone, changes=tuple(changes))


def _linked(record: MemoryRecord, relation: Relation, others: Iterable[MemoryRecord]) -> tuple[Link, ...]:
    return tuple(dict.fromkeys([*record.links, *(Link(relation, other.id) for other in others)]))[:MAX_LINKS]


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
        groups[key(record)].append(record)
    return groups.values()


def _age(record: MemoryRecord) -> tuple[datetime, datetime, str]:
    return (_start(record), record.created_at, record.id)


def _start(record: MemoryRecord) -> datetime:
    return record.occurred_at if record.valid_from is None else record.valid_from
