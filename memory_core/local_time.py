"""On which day something was, for the person whose memory it is.

Every date and every time of day that a person or a model reads, and every date that a question is compared with, is
that of the place where the record was said or happened: it comes from here. `.date()`, `.hour` and `.weekday()` of a
record's times are called nowhere else (`tests/repository/test_local_days.py`).
"""

from __future__ import annotations

from datetime import date, datetime

from memory_core.models import MemoryRecord
from memory_core.values.times import at_offset, offset_of


def local_time(record: MemoryRecord, moment: datetime | None = None) -> datetime:
    """The clock time where the record was said or happened: of that itself, or of another moment of the record."""
    return record.occurred_at if moment is None else at_offset(moment, offset_of(record.occurred_at))


def local_day(record: MemoryRecord, moment: datetime | None = None) -> date:
    """The calendar day there; see `local_time`."""
    return local_time(record, moment).date()
