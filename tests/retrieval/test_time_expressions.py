"""Relative time made absolute, and dates in questions."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.time_expressions import (
    DateMention,
    asks_now,
    format_date,
    is_date_word,
    mentioned_dates,
    resolve,
)

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
PIECES = [
    "yesterday", "the day before yesterday", "last", "next", "this", "past", "on", "night", "friday", "monday", "week",
    "weekend", "month", "year", "two", "a", "couple of", "999", "0", "days", "years", "ago", "from now", "tomorrow",
    "just got", "may", "may 7th", "31", "in 2022", "2023-02-30", "sept", "feb", "march", "of", ",", ".", "9999", "\n",
]  # fmt: skip
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)
TIMES = st.datetimes(timezones=st.none() | st.sampled_from([UTC, timezone(timedelta(hours=14))]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went yesterday", ["7 May 2023"]),
        ("Last night was fun", ["7 May 2023"]),
        ("the day before yesterday", ["6 May 2023"]),
        ("See you today, or tonight", ["8 May 2023"]),
        ("this morning", ["8 May 2023"]),
        ("I just got home", ["8 May 2023"]),
        ("Tomorrow we leave", ["9 May 2023"]),
        ("the day after tomorrow", ["10 May 2023"]),
        ("last Friday", ["5 May 2023"]),
        ("this past Sunday", ["7 May 2023"]),
        ("on Saturday", ["6 May 2023"]),
        ("last Monday", ["1 May 2023"]),
        ("next Monday", ["15 May 2023"]),
        ("this Monday", ["8 May 2023"]),
        ("this Friday", ["12 May 2023"]),
        ("next Friday", ["12 May 2023"]),
        ("last week", ["1 May 2023"]),
        ("next week", ["15 May 2023"]),
        ("the past weekend", ["6 May 2023"]),
        ("this weekend", ["13 May 2023"]),
        ("last month", ["April 2023"]),
        ("this month", ["May 2023"]),
        ("next month", ["June 2023"]),
        ("last year", ["2022"]),
        ("this year", ["2023"]),
        ("next year", ["2024"]),
        ("3 days ago", ["5 May 2023"]),
        ("two weeks ago", ["24 April 2023"]),
        ("two weekends ago", ["24 April 2023"]),
        ("a couple of months ago", ["March 2023"]),
        ("a few years ago", ["2020"]),
        ("ten years ago", ["2013"]),
        ("a year ago", ["2022"]),
        ("two weeks from now", ["22 May 2023"]),
        ("LAST\n  FRIDAY", ["5 May 2023"]),
    ],
)
def test_a_relative_expression_becomes_the_date_it_means(text: str, expected: list[str]) -> None:
    assert resolve(text, MONDAY) == expected


def test_dates_come_in_order_of_mention_and_once() -> None:
    text = "Last week I ran, yesterday I swam, and yesterday night I slept. Last year I did not."
    assert resolve(text, MONDAY) == ["1 May 2023", "7 May 2023", "2022"]


@pytest.mark.parametrize(
    "text",
    ["", "It was great", "Fridays are best", "this week", "on week two", "a lastday", "everyday", "ago", "a day"],
)
def test_a_text_that_points_to_no_day_resolves_to_nothing(text: str) -> None:
    assert resolve(text, MONDAY) == []


@pytest.mark.parametrize(
    ("text", "when", "expected"),
    [
        ("yesterday", datetime(2024, 3, 1, tzinfo=UTC), ["29 February 2024"]),
        ("tomorrow", datetime(2023, 12, 31, tzinfo=UTC), ["1 January 2024"]),
        ("last month", datetime(2023, 1, 31, tzinfo=UTC), ["December 2022"]),
        ("next month", datetime(2023, 12, 31, tzinfo=UTC), ["January 2024"]),
        ("14 months ago", datetime(2023, 1, 15, tzinfo=UTC), ["November 2021"]),
        ("last Sunday", datetime(2023, 1, 1, tzinfo=UTC), ["25 December 2022"]),
        ("yesterday, last month, last year", datetime(1, 1, 1, tzinfo=UTC), []),
        ("tomorrow, next month, next year", datetime(9999, 12, 31, tzinfo=UTC), []),
        ("999 years ago", datetime(999, 6, 1, tzinfo=UTC), []),
        ("998 years ago", datetime(999, 6, 1, tzinfo=UTC), ["1"]),
    ],
)
def test_dates_are_right_where_months_years_and_the_calendar_end(
    text: str, when: datetime, expected: list[str]
) -> None:
    assert resolve(text, when) == expected


@given(st.sampled_from(["last", "next", "this"]), st.sampled_from(range(7)), st.dates(date(2, 1, 1), date(9998, 1, 1)))
def test_a_weekday_resolves_to_that_weekday_on_the_right_side_of_today(word: str, weekday: int, today: date) -> None:
    name = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"][weekday]
    first, last = {"last": (-7, -1), "next": (1, 7), "this": (0, 6)}[word]
    days = [today + timedelta(days) for days in range(first, last + 1)]
    when = datetime(today.year, today.month, today.day, 23, 59, tzinfo=UTC)
    assert resolve(f"{word} {name}", when) == [format_date(day) for day in days if day.weekday() == weekday]


@given(TEXTS, TIMES)
def test_no_text_and_no_time_raises(text: str, when: datetime) -> None:
    resolved = resolve(text, when)
    assert len(set(resolved)) == len(resolved)
    asks_now(text)


@given(TEXTS)
def test_every_mentioned_date_exists(text: str) -> None:
    for mention in mentioned_dates(text):
        assert mention.year is not None or mention.month is not None
        assert mention.month is None or 1 <= mention.month <= 12
        if mention.day is not None:
            assert mention.month is not None
            assert 1 <= mention.day <= monthrange(mention.year or 2000, mention.month)[1]


@given(st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31)))
def test_a_formatted_date_is_read_back(day: date) -> None:
    expected = [DateMention(day.year, day.month, day.day)]
    assert mentioned_dates(f"What happened on {format_date(day)}?") == expected
    assert mentioned_dates(f"What happened on {day.isoformat()}?") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What happened in May?", [DateMention(None, 5, None)]),
        ("last March", [DateMention(None, 3, None)]),
        ("mid-May", [DateMention(None, 5, None)]),
        ("in June", [DateMention(None, 6, None)]),
        ("Who did she meet on May 7th?", [DateMention(None, 5, 7)]),
        ("May the 4th", [DateMention(None, 5, 4)]),
        ("May 7th, 2023", [DateMention(2023, 5, 7)]),
        ("the 7th of May", [DateMention(None, 5, 7)]),
        ("12 DECEMBER, 2023?", [DateMention(2023, 12, 12)]),
        ("Jan 2023 or 3 Sept", [DateMention(2023, 1, None), DateMention(None, 9, 3)]),
        ("Dec. 5", [DateMention(None, 12, 5)]),
        ("in 2022", [DateMention(2022, None, None)]),
        ("the summer of 1999", [DateMention(1999, None, None)]),
        ("2023-05-07T10:00", [DateMention(2023, 5, 7)]),
        ("29 February", [DateMention(None, 2, 29)]),
        ("29 February 2023", [DateMention(2023, 2, None)]),
        ("May 2023, in May 2023", [DateMention(2023, 5, None)]),
    ],
)
def test_dates_are_found_in_a_question(query: str, expected: list[DateMention]) -> None:
    assert mentioned_dates(query) == expected


@pytest.mark.parametrize(
    "query",
    ["", "Who may come?", "Did they march for rights?", "dec said so", "room 2022", "2023-13-01", "maybe", "Marching"],
)
def test_words_that_only_look_like_dates_are_none(query: str) -> None:
    assert mentioned_dates(query) == []


@pytest.mark.parametrize("word", ["May", "march", "Sunday"])
def test_months_and_weekdays_are_words_of_dates(word: str) -> None:
    assert is_date_word(word)
    assert not is_date_word(f"{word}s")


@pytest.mark.parametrize(
    "query",
    [
        *["Where do I live now?", "Which car do they drive these days", "Am I still a member?", "current gate code"],
        *["Where do I live?", "What's the gate code?", "Who looks after the dog?", "Which train does Ebba take?"],
    ],
)
def test_a_question_about_the_present_is_recognised(query: str) -> None:
    assert asks_now(query)


@pytest.mark.parametrize(
    "query", ["", "Where did I live until now?", "Who was still there?", "know", "Where have I been?", "dress code"]
)
def test_other_questions_do_not_ask_about_the_present(query: str) -> None:
    assert not asks_now(query)


@pytest.mark.parametrize("unit", ["last ", "1", " ", "a couple of ", "in ", "may ", "7 may, ", "2023-", "\n", "th "])
def test_hostile_text_is_read_in_one_pass(unit: str) -> None:
    text = "day " + unit * (100_000 // len(unit))
    assert resolve(text, MONDAY) == []
    assert len(mentioned_dates(text)) <= 2
    assert not asks_now(text)


def test_a_day_is_written_without_leading_zeros() -> None:
    assert format_date(MONDAY) == "8 May 2023"
    assert format_date(date(1, 1, 1)) == "1 January 1"
