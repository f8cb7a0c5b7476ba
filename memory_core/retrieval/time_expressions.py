"""Resolve relative time expressions in texts and find the dates in queries, by what each language calls them.

"We went to the lake last Friday" cannot answer "what happened on 5 May 2023?" until the Friday is resolved, and that
needs the record's own timestamp. `resolve` does so when a record is indexed; `mentioned_dates` and `asks_now` read the
question. No function here raises on any text or date, and all repetitions in patterns are bounded, so the time taken
grows no faster than the text.

English expressions are read in any text, those of another language in texts that its function words tell, because
"hier" is yesterday in French and here in German. What they mean is written in their own language, as a question in it
names the day.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Final

from memory_core.retrieval.function_words import languages_of
from memory_core.retrieval.languages.english import ENGLISH, ENGLISH_TIMES
from memory_core.retrieval.languages.every import LANGUAGES
from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.languages.times import Phrases, Times

_TIMED: Final[Mapping[Language, Times]] = {each: each.times for each in LANGUAGES if each.times is not None}
_WORD: Final = re.compile(r"\w+")
_SATURDAY: Final = 5
_YEAR: Final = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
_ISO: Final = re.compile(r"\b([12][0-9]{3}-[0-9]{2}-[0-9]{2})(?![0-9-])")


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

    In English it understands yesterday, last night, today, tonight, this morning, tomorrow and their neighbours; "just
    got", "just had" and "just went" (the same day); last, past, next, this or on a weekday; last, past, next or this
    week, weekend, month or year; and counts of them "ago" or "from now". "On Friday" is taken as the Friday before,
    "this Friday" as the one to come, a weekend as its Saturday, a week as seven days, "a few" as three. `languages/`
    has the same for others.

    Args:
        text: The words that were said.
        today: The day on which it was said, where it was said (`local_day`).
        words: The text's words in lower case, where they are known already.

    Returns:
        Distinct dates in order of first mention, as precise as the expression is: "7 May 2023", "May 2023" or
        "2023". Dates outside the years 1 to 9999 are left out.
    """
    lower = _lower(text)
    words = _WORD.findall(lower) if words is None else words
    hints = _hints()
    if hints.keys().isdisjoint(words):
        return []
    hinted = dict.fromkeys(language for word in hints.keys() & words for language in hints[word])
    told = languages_of(text) if hinted.keys() - {ENGLISH} else ()
    read = [language for language in hinted if language is ENGLISH or language in told]
    found = [(match.start(), _absolute(match, _TIMED[each], today)) for each in read for match in _matches(each, lower)]
    return list(dict.fromkeys(absolute for _, absolute in sorted(found, key=lambda one: one[0]) if absolute))


def is_date_word(word: str) -> bool:
    """Return whether a word is the name of a month or a weekday in English."""
    return word.lower() in _months(ENGLISH_TIMES) or word.lower() in _weekdays(ENGLISH_TIMES)


def asks_now(query: str, languages: Iterable[Language] = (ENGLISH,)) -> bool:
    """Return whether a query asks what is true at present: a verb in the present tense or "now", and nothing of the
    past.

    Args:
        languages: The languages that the query may be in.
    """
    lower = _lower(query)
    patterns = [_tenses(times) for each in languages if (times := each.times)]
    return any(now.search(lower) and not past.search(lower) for now, past in patterns)


def format_date(when: date) -> str:
    """Return the day as indexed and resolved texts write it: "7 May 2023"."""
    return _written(when, ENGLISH_TIMES)


def month_name(mention: DateMention) -> str:
    """Return the month as `format_date` writes it, and nothing for a year."""
    return _month_names(ENGLISH_TIMES)[mention.month - 1] if mention.month else ""


def mentioned_dates(query: str) -> list[DateMention]:
    """Return the absolute dates that a query names, distinct, in order.

    It understands "7 May 2023", "May 7th, 2023", "the 7th of May", "May 2023", "in May", "in 2022" and "2023-05-07",
    and "7. Mai", "le 7 mai", "7 de mayo de 2023" and so on. A short month name counts only beside a number ("3 Sept",
    "Jan 2023"); "may" and "march" only beside a number or after a word such as "in" or "last", because they are verbs
    too. An impossible day or ISO date is dropped.
    """
    lower = _lower(query)
    found = [(match.start(), _iso(match[1])) for match in _ISO.finditer(lower)]
    words = frozenset(_WORD.findall(lower))
    has_year = _YEAR.search(lower) is not None
    for times in _TIMED.values():
        if has_year or not words.isdisjoint(_names_of_months(times)):
            found += [(match.start(), _mention(match, times)) for match in _date_pattern(times).finditer(lower)]
    mentions = dict.fromkeys(mention for _, mention in sorted(found, key=lambda one: one[0]) if mention)
    return [each for each in mentions if not any(_is_part(each, other) for other in mentions)]


def _is_part(one: DateMention, other: DateMention) -> bool:
    """True if another date says the same and more: languages share names of months, not the order of their parts."""
    parts = ((one.year, other.year), (one.month, other.month), (one.day, other.day))
    return one != other and all(own is None or own == others for own, others in parts)


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.lower())


def _forms(names: str) -> list[str]:
    """Each of the forms in order, with and without its diacritics."""
    forms = names.split("|")
    return forms + [plain for each in forms if (plain := _plain(each)) not in forms]


def _plain(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c))


def _numbered(names: str, start: int) -> dict[str, int]:
    """The number of each form of these names."""
    return {form: n for n, name in enumerate(names.split(), start) for form in _forms(name) if form != "-"}


def _any_of(phrases: Iterable[str]) -> str:
    """Return a pattern for one of the phrases, longest first, with up to three spaces for each space."""
    forms = {form for phrase in phrases for form in _forms(phrase)}
    return "|".join(sorted(map(re.escape, forms), key=len, reverse=True)).replace(r"\ ", r"\s{1,3}")


@cache
def _months(times: Times) -> Mapping[str, int]:
    return _numbered(times.months, 1)


@cache
def _short_months(times: Times) -> Mapping[str, int]:
    return _numbered(times.short_months, 1)


@cache
def _names_of_months(times: Times) -> frozenset[str]:
    return frozenset((*_months(times), *_short_months(times)))


@cache
def _weekdays(times: Times) -> Mapping[str, int]:
    return _numbered(times.weekdays, 0)


@cache
def _units(times: Times) -> Mapping[str, str]:
    """The unit by each of its words."""
    return {form: unit for unit, words in times.units.items() for word in words for form in _forms(word)}


@cache
def _phrases(times: Times) -> Mapping[str, int]:
    """The meaning of each phrase for a day, and of each word for a count."""
    return {form: days for phrase, days in (*times.days.items(), *times.counts.items()) for form in _forms(phrase)}


@cache
def _hints() -> Mapping[str, Sequence[Language]]:
    """The languages by words of which every relative expression has one: to look for these first is much faster."""
    found: dict[str, list[Language]] = {}
    for language, times in _TIMED.items():
        names = (*times.days, *_weekdays(times), *_units(times))
        for hint in {max(_WORD.findall(form)[::-1], key=len) for name in names for form in _forms(name)}:
            found.setdefault(hint, []).append(language)
    return found


@cache
def _expression(times: Times) -> re.Pattern[str]:
    """One group for each phrase: a day, directions (`d0` ...), counts (`c0` ...)."""
    singular = [words[0] for unit, words in times.units.items() if unit != "day"]
    weekday = f"(?:{_any_of(_weekdays(times))})"
    thing = f"(?:{_any_of([*_weekdays(times), *singular])})"
    count = rf"(?:[0-9]{{1,3}}|{_any_of(times.counts)})\s{{1,3}}(?:{_any_of(_units(times))})"
    near = f"(?<!{times.not_before} )" if times.not_before else ""
    parts = [rf"(?P<near>{near}(?:{_any_of(times.days)}))"]
    for name, phrases, inside in (("d", times.directions, thing), ("c", times.counted, count)):
        for n, (_, those) in enumerate(_alike(phrases)):
            parts.append(_around(those, f"{name}{n}", weekday if "@" in those[0] else inside))
    return re.compile(rf"\b(?:{'|'.join(parts)})\b")


def _alike(phrases: Phrases) -> Sequence[tuple[int, Sequence[str]]]:
    """The phrases of each meaning that have their weekday, unit or count at the same place: one pattern finds them."""
    found: dict[tuple[int, str, bool], list[str]] = {}
    for phrase, meaning in phrases.items():
        found.setdefault((meaning, *re.findall("[#@]", phrase), phrase[0] in "#@"), []).append(phrase)
    return [(meaning, those) for (meaning, *_), those in found.items()]


def _around(phrases: Sequence[str], name: str, thing: str) -> str:
    """Return a pattern of a group with the name, in which a group with an underscore after it is the thing.

    Args:
        phrases: All with the thing at their beginning, or all at their end.
    """
    before, after = zip(*(re.split("[#@]", phrase) for phrase in phrases), strict=True)
    return f"(?P<{name}>(?:{_any_of(before)})(?P<{name}_>{thing})(?:{_any_of(after)}))"


def _matches(language: Language, lower: str) -> Iterable[re.Match[str]]:
    return _expression(_TIMED[language]).finditer(lower)


@cache
def _tenses(times: Times) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(times.now), re.compile(times.past)


@cache
def _date_pattern(times: Times) -> re.Pattern[str]:
    of = rf"(?:{times.of})" if times.of else ""
    ordinal = f"(?:{times.ordinal})?"
    after = rf"(?:\s{{1,3}}(?:the\s{{1,3}})?(?P<day_after>[0-9]{{1,2}}){ordinal}\b)?" if times.day_may_follow else ""
    return re.compile(
        rf"\b(?:(?:(?P<lead>{_any_of(times.before_month.split())})[\s'\u2019-])?"
        rf"(?:(?P<day>[0-9]{{1,2}}){ordinal}\s{{1,3}}(?:{of}\s{{1,3}})?)?"
        rf"(?P<month>{_any_of([*_months(times), *_short_months(times)])})\b\.?"
        rf"{after}(?:,?\s{{1,3}}(?:{of}\s{{1,3}})?(?P<month_year>[12][0-9]{{3}})\b)?"
        rf"|(?:{_any_of(times.before_year.split())})\s{{1,3}}(?P<year>(?:19|20)[0-9]{{2}})\b)"
    )


def _absolute(found: re.Match[str], times: Times, today: date) -> str | None:
    kind = found.lastgroup or ""
    if kind == "near":
        return _day(today, _phrases(times)[_single_spaced(found[kind])], times)
    thing = _single_spaced(found[f"{kind}_"])
    if kind.startswith("d"):
        return _directed(today, _alike(times.directions)[int(kind[1:])][0], thing, times)
    count, _, unit = thing.rpartition(" ")
    many = int(count) if count.isdigit() else _phrases(times)[count]
    return _shifted(today, _units(times)[unit], many * _alike(times.counted)[int(kind[1:])][0], times)


def _directed(today: date, direction: int, thing: str, times: Times) -> str | None:
    weekday = _weekdays(times).get(thing)
    unit = None if weekday is not None else _units(times)[thing]
    if weekday is not None or unit == "weekend":
        return _day(today, _days_to_weekday(today, direction, _SATURDAY if weekday is None else weekday), times)
    if unit == "week" and direction == 0:  # names no particular day
        return None
    return _shifted(today, unit or "", direction, times)


def _days_to_weekday(today: date, direction: int, weekday: int) -> int:
    """Return how many days ahead the weekday lies: -7 to -1 for the last one, 1 to 7 for the next, 0 to 6 for this."""
    ahead = (weekday - today.weekday()) % 7
    if direction < 0:
        return ahead - 7
    return ahead or 7 if direction > 0 else ahead


def _shifted(today: date, unit: str, count: int, times: Times) -> str | None:
    if unit == "day":
        return _day(today, count, times)
    if unit.startswith("week"):
        return _day(today, 7 * count, times)
    if unit == "year":
        year, name = today.year + count, ""
    else:
        year, month = divmod(12 * today.year + today.month - 1 + count, 12)
        name = _month_names(times)[month] + " "
    return f"{name}{year}" if date.min.year <= year <= date.max.year else None


def _day(today: date, days: int, times: Times) -> str | None:
    try:
        return _written(today + timedelta(days), times)
    except OverflowError:
        return None


def _written(day: date, times: Times) -> str:
    return f"{day.day} {_month_names(times)[day.month - 1]} {day.year}"


@cache
def _month_names(times: Times) -> Sequence[str]:
    return [names.split("|")[0].capitalize() for names in times.months.split()]


def _single_spaced(phrase: str) -> str:
    return " ".join(phrase.split())


def _iso(written: str) -> DateMention | None:
    try:
        day = date.fromisoformat(written)
    except ValueError:
        return None
    return DateMention(day.year, day.month, day.day)


def _mention(found: re.Match[str], times: Times) -> DateMention | None:
    if found["year"]:
        return DateMention(int(found["year"]), None, None)
    name = found["month"]
    number = found["day"] or (found["day_after"] if times.day_may_follow else None)
    year = int(found["month_year"]) if found["month_year"] else None
    is_other = name in times.other_words.split() and not found["lead"]
    if not number and year is None and (is_other or name not in _months(times)):
        return None
    month = _months(times).get(name) or _short_months(times)[name]
    return DateMention(year, month, _existing_day(number, month, year))


def _existing_day(number: str | None, month: int, year: int | None) -> int | None:
    longest = calendar.monthrange(year or 2000, month)[1]  # without a year, 29 February may exist
    return int(number) if number and 1 <= int(number) <= longest else None
