"""The fit of the moment of a record to a date that a query names, beside the rule written down for one record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.date_fit import SLACK_DAYS, date_fit
from memory_core.retrieval.time_expressions import DateMention

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(timezones=st.just(UTC))
NEAR = st.datetimes(datetime(2022, 11, 1), datetime(2024, 3, 1), timezones=st.just(UTC))  # noqa: DTZ001 (naive bounds)


def _mention(year: int, month: int, day: int, given_parts: int, has_year: bool) -> DateMention:  # noqa: FBT001
    if given_parts == 1:
        return DateMention(year, None, None)
    return DateMention(year if has_year else None, month, day if given_parts == 3 else None)


MENTIONS = st.builds(
    _mention, st.integers(2022, 2024), st.integers(1, 12), st.integers(1, 28), st.integers(1, 3), st.booleans()
)


def fits(moments: Sequence[datetime], mentions: Sequence[DateMention]) -> list[float]:
    micros = [(moment - EPOCH) // timedelta(microseconds=1) for moment in moments]
    found: list[float] = date_fit(np.array(micros, np.int64), mentions).tolist()
    return found


def plainly(moment: datetime, mention: DateMention) -> float:
    """The rule for one record and one date."""
    if mention.month is None:
        return float(moment.year == mention.year)
    best = 0.0
    for year in (moment.year - 1, moment.year, moment.year + 1) if mention.year is None else (mention.year,):
        start = datetime(year, mention.month, mention.day or 1, tzinfo=UTC)
        late = (moment - start) / timedelta(days=1) - (1 if mention.day else 31)
        if moment >= start:
            best = max(best, min(1.0, 1 - late / SLACK_DAYS))
    return best


@given(st.lists(NEAR, max_size=20), st.lists(MENTIONS, max_size=4))
def test_a_record_fits_the_best_of_the_dates_as_the_rule_says(
    moments: list[datetime], mentions: list[DateMention]
) -> None:
    expected = [max((plainly(moment, mention) for mention in mentions), default=0.0) for moment in moments]
    assert fits(moments, mentions) == pytest.approx(expected, abs=1e-6)


@given(st.lists(MOMENTS, min_size=1, max_size=20), st.lists(MENTIONS | st.just(DateMention(None, 2, 29)), max_size=4))
def test_any_moment_fits_by_something_from_0_to_1(moments: list[datetime], mentions: list[DateMention]) -> None:
    found = fits(moments, mentions)
    assert all(0.0 <= fit <= 1.0 for fit in found)
    assert fits(moments[::-1], mentions[::-1]) == found[::-1]


@given(NEAR)
def test_what_happened_on_the_named_day_fits_entirely(moment: datetime) -> None:
    day: date = moment.date()
    named = [(day.year, day.month, day.day), (day.year, day.month, None), (day.year, None, None)]
    for mention in (*named, (None, day.month, day.day), (None, day.month, None)):
        assert fits([moment], [DateMention(*mention)]) == [1.0]


def test_december_is_spoken_of_until_the_middle_of_january() -> None:
    first = datetime(2024, 1, 1, tzinfo=UTC)
    moments = [first + timedelta(days=days) for days in (0, 7, 14, -1)]
    assert fits(moments, [DateMention(None, 12, None)]) == pytest.approx([1.0, 0.5, 0.0, 1.0])


@given(NEAR)
def test_the_day_before_does_not_fit(moment: datetime) -> None:
    day = moment.date() + timedelta(days=1)
    assert fits([moment], [DateMention(day.year, day.month, day.day)]) == [0.0]
