"""Find records that fade: those not read for long, and those beyond an owner's budget. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from memory_core.lifecycle.values import DAY, FADED, Change, MaintainPolicy, Reason, Step
from memory_core.models import MemoryRecord, Patch
from memory_core.profile import PINS
from memory_core.records.undone import NOTHING, Undone
from memory_core.values.json_text import encode_json


def strength(record: MemoryRecord, policy: MaintainPolicy, now: datetime) -> float:
    """The current strength of a record: its importance, halved with every half-life since it was said or last read.

    Exponential forgetting from the last use, as in Park et al. 2023, with a rate for each kind.
    """
    half_life = policy.half_lives.get(record.kind)
    if half_life is None:
        return record.importance
    days = max(timedelta(0), now - last_used(record)) / DAY
    return float(record.importance * 0.5 ** (days / half_life))


def fading(
    records: Iterable[MemoryRecord], policy: MaintainPolicy, now: datetime, undone: Undone = NOTHING
) -> Iterator[Step]:
    """Steps that archive records beyond their lifetime, faded ones and, of the others, the weakest beyond the budget.

    Args:
        records: Active records.
        undone: A record that was brought back is not archived again for the same reason.
    """
    left: list[MemoryRecord] = []
    for record in sorted(records, key=lambda each: (strength(each, policy, now), last_used(each), each.id)):
        reason = _end_of(record, policy, now)
        if reason is None or is_pinned(record) or undone.has(reason, record.id):
            left.append(record)
        else:
            yield _archived(record, reason)
    yield from (_archived(record, "budget") for record in _beyond_budget(left, policy, undone))


def outdated(records: Iterable[MemoryRecord], days: float, now: datetime) -> Iterator[Step]:
    """A step for each record that has been archived for so many days: it is deleted, but not if it is pinned or shows
    in `history` what was true before.

    Args:
        records: Records in all states.
    """
    for record in records:
        is_old = record.state == "archived" and (now - record.updated_at) / DAY > days
        if is_old and record.valid_to is None and record.text and not is_pinned(record):
            yield Step(reason="deleted", kept="", gone=(record.text,), changes=(), deleted={record.id: record.version})


def is_pinned(record: MemoryRecord) -> bool:
    """True if a record stays active, because a person or a model pinned it."""
    return not set(PINS).isdisjoint(record.tags)


def last_used(record: MemoryRecord) -> datetime:
    """The time at which a record was last read or, if it never was, said."""
    return record.occurred_at if record.accessed_at is None else max(record.accessed_at, record.occurred_at)


def _end_of(record: MemoryRecord, policy: MaintainPolicy, now: datetime) -> Reason | None:
    lifetime = policy.lifetimes.get(record.kind)
    if lifetime is not None and (now - record.occurred_at) / DAY > lifetime:
        return "expired"
    return "faded" if record.kind in policy.half_lives and strength(record, policy, now) < FADED else None


def _beyond_budget(records: Sequence[MemoryRecord], policy: MaintainPolicy, undone: Undone) -> Iterator[MemoryRecord]:
    count, size = len(records), sum(map(_bytes, records))
    most_records = count if policy.most_records is None else policy.most_records
    most_bytes = size if policy.most_bytes is None else policy.most_bytes
    for record in records:
        if count <= most_records and size <= most_bytes:
            return
        if not is_pinned(record) and not undone.has("budget", record.id):
            count, size = count - 1, size - _bytes(record)
            yield record


def _bytes(record: MemoryRecord) -> int:
    return len(record.text.encode()) + (len(encode_json(record.data)) if record.data else 0)


def _archived(record: MemoryRecord, reason: Reason) -> Step:
    change = Change(id=record.id, version=record.version, patch=Patch(state="archived"), undo=Patch(state=record.state))
    return Step(reason=reason, kept="", gone=(record.text,), changes=(change,))
