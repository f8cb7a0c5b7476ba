"""What fades: records that nobody has read for long, and what an owner's budget does not hold. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from memory_core.lifecycle.plan import FADED, PINNED, Change, MaintainPolicy, Reason, Step
from memory_core.models import MemoryRecord, Patch

_DAY: Final = timedelta(days=1)


def strength(record: MemoryRecord, policy: MaintainPolicy, now: datetime) -> float:
    """How much a record matters now: its importance, halved with every half-life since it was said or last read.

    Exponential forgetting from the last use, as in Park et al. 2023, with a rate for each kind.
    """
    half_life = policy.half_lives.get(record.kind)
    if half_life is None:
        return record.importance
    days = max(timedelta(0), now - _last_used(record)) / _DAY
    return float(record.importance * 0.5 ** (days / half_life))


def fading(records: Iterable[MemoryRecord], policy: MaintainPolicy, now: datetime) -> Iterator[Step]:
    """Steps that archive what has faded and, of the rest, what matters least beyond the budget.

    Args:
        records: Active ones.
    """
    by_strength = sorted(records, key=lambda each: (strength(each, policy, now), _last_used(each), each.id))
    fade = [record for record in by_strength if record.kind in policy.half_lives and _may_go(record)]
    faded = [record for record in fade if strength(record, policy, now) < FADED]
    yield from (_archived(record, "faded") for record in faded)
    gone = {record.id for record in faded}
    left = [record for record in by_strength if record.id not in gone]
    yield from (_archived(record, "budget") for record in _beyond(left, policy))


def _beyond(records: Sequence[MemoryRecord], policy: MaintainPolicy) -> Iterator[MemoryRecord]:
    count, chars = len(records), sum(len(record.text) for record in records)
    most_records = count if policy.most_records is None else policy.most_records
    most_chars = chars if policy.most_chars is None else policy.most_chars
    for record in filter(_may_go, records):
        if count <= most_records and chars <= most_chars:
            return
        count, chars = count - 1, chars - len(record.text)
        yield record


def _may_go(record: MemoryRecord) -> bool:
    return PINNED not in record.tags


def _archived(record: MemoryRecord, reason: Reason) -> Step:
    change = Change(id=record.id, version=record.version, patch=Patch(state="archived"), undo=Patch(state=record.state))
    return Step(reason=reason, kept="", gone=(record.text,), changes=(change,))


def _last_used(record: MemoryRecord) -> datetime:
    return record.occurred_at if record.accessed_at is None else max(record.accessed_at, record.occurred_at)
