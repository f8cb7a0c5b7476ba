"""The fit of the moment of a record to a date that a query names, beside the rule written down for one record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.date_fit import date_fit
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
    named = ((mention.year, moment.year), (mention.month, moment.month), (mention.day, moment.day))
    return float(all(of_date in (None, of_moment) for of_date, of_moment in named))


@given(st.lists(NEAR, max_size=20), st.lists(MENTIONS, max_size=4))
def test_a_record_fits_the_best_of_the_dates_as_the_rule_says(
    moments: list[datetime], mentions: list[DateMention]
) -> None:
    expected = [max((plainly(moment, mention) for mention in mentions), default=0.0) for moment in moments]
    assert fits(moments, mentions) == expected


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


@given(NEAR)
def test_the_day_before_and_the_day_after_do_not_fit(moment: datetime) -> None:
    for away in (-1, 1):
        day = moment.date() + timedelta(days=away)
        assert fits([moment], [DateMention(day.year, day.month, day.day)]) == [0.0]
