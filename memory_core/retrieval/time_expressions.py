"""Resolve relative time expressions in texts and find the dates in queries. English only.

"We went to the lake last Friday" cannot answer "what happened on 5 May 2023?" until the Friday is resolved, and that
needs the record's own timestamp. `resolve` does so when a record is indexed; `mentioned_dates` and `asks_now` read the
question. No function here raises on any text or date, and all repetitions in patterns are bounded, so the time taken
grows no faster than the text.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

# Spelled out, because `calendar.month_name` follows the locale of the process.
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONTHS = {name.lower(): number for number, name in enumerate(_MONTH_NAMES, start=1)}
_SHORT_MONTHS = {name[:3]: number for name, number in _MONTHS.items() if name != "may"} | {"sept": 9}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS_FROM_TODAY = {
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "just got": 0,
    "just had": 0,
    "just went": 0,
    "tomorrow": 1,
    "day after tomorrow": 2,
}
_DIRECTIONS = {"last": -1, "past": -1, "this past": -1, "on": -1, "this": 0, "next": 1}
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
    "couple": 2, "couple of": 2, "few": 3,
}  # fmt: skip


def _any_of(phrases: Iterable[str]) -> str:
    """Return a pattern for one of the phrases, longest first, with up to three spaces for each space."""
    return "|".join(sorted(phrases, key=len, reverse=True)).replace(" ", r"\s{1,3}")


# Every expression contains one of these words; searching for them first is ten times as fast.
_HINTS = frozenset(
    [
        *["day", "days", "yesterday", "today", "tonight", "tomorrow", "night", "just", "this"],
        *["week", "weeks", "weekend", "weekends", "month", "months", "year", "years"],
        *_WEEKDAYS,
    ]
)
_EXPRESSION = re.compile(
    rf"\b(?:(?P<near>{_any_of(_DAYS_FROM_TODAY)})"
    rf"|(?P<direction>{_any_of(_DIRECTIONS)})\s{{1,3}}(?:(?P<weekday>{_any_of(_WEEKDAYS)})"
    r"|(?P<period>week|weekend|month|year))"
    rf"|(?P<count>[0-9]{{1,3}}|{_any_of(_COUNTS)})\s{{1,3}}(?P<unit>day|week|weekend|month|year)s?"
    r"\s{1,3}(?P<side>ago|from\s{1,3}now))\b"
)
_NOW = re.compile(
    r"\b(?:is|are|am|does|has|have|do\s{1,3}(?:i|we|you|they))\b|['\u2019]s\b"
    r"|\b(?:who|what|which)\s{1,3}(?:\w{1,40}\s{1,3})?\w{1,40}[^\W_s]s\b"  # "who looks after"
    r"|\b(?:now|nowadays|currently|current|these\s{1,3}days|at\s{1,3}present|at\s{1,3}the\s{1,3}moment|today|still|latest"
    r"|any\s?more|any\s{1,3}longer|lately)\b"
)
_THEN = re.compile(
    r"\b(?:was|were|did|had|used\s{1,3}to|before|ago|first|originally|previously|formerly|last|earlier|old|until|when"
    r"|since|been|happened"
    r"|back\s{1,3}then|would\s{1,3}have|yesterday|in\s{1,3}(?:19|20)[0-9]{2})\b"
)
_BEFORE_A_MONTH = "in|of|during|since|until|till|by|before|after|from|around|early|mid|late|last|next|this"
_WORD = re.compile(r"\w+")
_BEFORE_A_YEAR = "in|of|during|since|until|till|by|before|after|from|around|year"
_DATE = re.compile(
    r"\b(?:(?P<iso>[12][0-9]{3}-[0-9]{2}-[0-9]{2})(?![0-9-])"
    rf"|(?:(?P<lead>{_BEFORE_A_MONTH})[\s-])?"
    r"(?:(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?\s{1,3}(?:of\s{1,3})?)?"
    rf"(?P<month>{_any_of([*_MONTHS, *_SHORT_MONTHS])})\b\.?"
    r"(?:\s{1,3}(?:the\s{1,3})?(?P<day_after>[0-9]{1,2})(?:st|nd|rd|th)?\b)?"
    r"(?:,?\s{1,3}(?P<month_year>[12][0-9]{3})\b)?"
    rf"|(?:{_BEFORE_A_YEAR})\s{{1,3}}(?P<year>(?:19|20)[0-9]{{2}})\b)"
)
_ALSO_VERBS = ("may", "march")


@dataclass(frozen=True, slots=True)
class DateMention:
    """A day, month or year that a text names; parts that it does not name are `None`.

    At least one of `year` and `month` is given, a `day` only with its `month`, and the day exists in that month.
    """

    year: int | None
    month: int | None
    day: int | None


def resolve(text: str, today: date, words: Sequence[str] | None = None) -> list[str]:
    """Return the days, months and years that a text's relative expressions mean.

    It understands yesterday, last night, today, tonight, this morning, tomorrow and their neighbours; "just got",
    "just had" and "just went" (the same day); last, past, next, this or on a weekday; last, past, next or this week,
    weekend, month or year; and counts of them "ago" or "from now". "On Friday" is taken as the Friday before,
    "this Friday" as the one to come, a weekend as its Saturday, a week as seven days, "a few" as three.

    Args:
        text: What was said.
        today: The day on which it was said, where it was said (`local_day`).
        words: The text's words in lower case, where they are known already.

    Returns:
        Distinct dates in order of first mention, as precise as the expression is: "7 May 2023", "May 2023" or
        "2023". Dates outside the years 1 to 9999 are left out.
    """
    if _HINTS.isdisjoint(_WORD.findall(text.lower()) if words is None else words):
        return []
    dates = (_absolute(found, today) for found in _EXPRESSION.finditer(text.lower()))
    return list(dict.fromkeys(absolute for absolute in dates if absolute))


def is_date_word(word: str) -> bool:
    """Return whether a word is the name of a month or a weekday."""
    return word.lower() in _MONTHS or word.lower() in _WEEKDAYS


def asks_now(query: str) -> bool:
    """Return whether a query asks what is true at present: a verb in the present tense or "now", and nothing of the
    past."""
    lower = query.lower()
    return _NOW.search(lower) is not None and _THEN.search(lower) is None


def format_date(when: date) -> str:
    """Return the day as indexed and resolved texts write it: "7 May 2023"."""
    return f"{when.day} {_MONTH_NAMES[when.month - 1]} {when.year}"


def mentioned_dates(query: str) -> list[DateMention]:
    """Return the absolute dates that a query names, distinct, in order.

    It understands "7 May 2023", "May 7th, 2023", "the 7th of May", "May 2023", "in May", "in 2022" and "2023-05-07".
    A short month name counts only beside a number ("3 Sept", "Jan 2023"); "may" and "march" only beside a number or
    after a word such as "in" or "last", because they are verbs too. An impossible day or ISO date is dropped.
    """
    mentions = (_mention(found) for found in _DATE.finditer(query.lower()))
    return list(dict.fromkeys(mention for mention in mentions if mention))


def _absolute(found: re.Match[str], today: date) -> str | None:
    if found["near"]:
        return _day(today, _DAYS_FROM_TODAY[_single_spaced(found["near"])])
    if found["count"]:
        digits = found["count"].isdigit()
        count = int(found["count"]) if digits else _COUNTS[_single_spaced(found["count"])]
        return _shifted(today, found["unit"], -count if found["side"] == "ago" else count)
    direction = _single_spaced(found["direction"])
    if found["weekday"]:
        return _day(today, _days_to_weekday(today, direction, _WEEKDAYS.index(found["weekday"])))
    if direction == "on":  # "on week two"
        return None
    if found["period"] == "weekend":
        return _day(today, _days_to_weekday(today, direction, 5))
    if found["period"] == "week" and direction == "this":  # names no particular day
        return None
    return _shifted(today, found["period"], _DIRECTIONS[direction])


def _days_to_weekday(today: date, direction: str, weekday: int) -> int:
    """Return how many days ahead the weekday lies: -7 to -1 for the last one, 1 to 7 for the next, 0 to 6 for this."""
    ahead = (weekday - today.weekday()) % 7
    if _DIRECTIONS[direction] < 0:
        return ahead - 7
    return ahead or 7 if direction == "next" else ahead


def _shifted(today: date, unit: str, count: int) -> str | None:
    if unit == "day":
        return _day(today, count)
    if unit.startswith("week"):
        return _day(today, 7 * count)
    if unit == "year":
        year, name = today.year + count, ""
    else:
        year, month = divmod(12 * today.year + today.month - 1 + count, 12)
        name = _MONTH_NAMES[month] + " "
    return f"{name}{year}" if date.min.year <= year <= date.max.year else None


def _day(today: date, days: int) -> str | None:
    try:
        return format_date(today + timedelta(days))
    except OverflowError:
        return None


def _single_spaced(phrase: str) -> str:
    return " ".join(phrase.split())


def _mention(found: re.Match[str]) -> DateMention | None:
    if found["iso"]:
        try:
            day = date.fromisoformat(found["iso"])
        except ValueError:
            return None
        return DateMention(day.year, day.month, day.day)
    if found["year"]:
        return DateMention(int(found["year"]), None, None)
    name = found["month"]
    number = found["day"] or found["day_after"]
    year = int(found["month_year"]) if found["month_year"] else None
    if not number and year is None and (name in _SHORT_MONTHS or (name in _ALSO_VERBS and not found["lead"])):
        return None
    month = _MONTHS.get(name) or _SHORT_MONTHS[name]
    return DateMention(year, month, _existing_day(number, month, year))


def _existing_day(number: str | None, month: int, year: int | None) -> int | None:
    longest = calendar.monthrange(year or 2000, month)[1]  # without a year, 29 February may exist
    return int(number) if number and 1 <= int(number) <= longest else None
