"""The names of times in a language: data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Phrases = Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Times:
    """Words are in lower case, separated by spaces; a name with several forms has them with "|" between."""

    months: str
    """The twelve names, from January."""
    short_months: str = ""
    """Shorter names, with "-" for none; they count beside a number only."""
    other_words: str = ""
    """Names of months that are other words, too: they count beside a number or after `before_month` only."""
    before_month: str
    """Words that stand before a month."""
    before_year: str
    """Words that stand before a year."""
    ordinal: str
    """The text that may follow the number of a day, as a regular expression."""
    of: str = ""
    """The text that may stand between a day and its month, and between a month and its year."""
    day_may_follow: bool = False
    """True if a day may stand after its month, as in "May the 4th"."""
    weekdays: str
    """The seven names, from Monday."""
    units: Mapping[str, Sequence[str]]
    """The words for "day", "week", "weekend", "month" and "year": the singular, then other forms."""
    days: Phrases
    """Phrases for a day, and how many days it lies ahead."""
    directions: Phrases
    """Phrases that begin or end with a weekday or a unit (#), or with a weekday (@): -1 for the last one, 0 for this
    one, 1 for the next."""
    counts: Phrases
    """Words for numbers of units."""
    counted: Phrases
    """Phrases that begin or end with a count of units (#): -1 for what lies behind, 1 for what lies ahead."""
    now: str
    """The words of a question about the present, as a regular expression."""
    past: str
    """The words of a question about the past, as a regular expression."""
    not_before: str = ""
    """A word after which no phrase for a day counts ("guten Morgen")."""
