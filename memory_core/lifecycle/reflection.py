"""Find patterns in many memories without a model: what comes back when, and what goes together. Pure functions.

A subject is a word that somebody uses on many days. Its days are compared with all days of that person by the binomial
test, so that a person who only ever writes on Mondays has no Monday subjects; with Bonferroni's correction for the
number of comparisons, a pattern in random memories is reported in about one of a hundred runs.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import combinations
from typing import Final

from memory_core.lifecycle.proposals import Insight
from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import analyse, ascii_words

LEAST_DAYS: Final = 5
"""Fewest days on which a subject, or two together, come up."""
LEAST_SHARE: Final = 0.5
"""A time is reported if at least this share of a subject's days falls into it, ..."""
CHANCE: Final = 0.01
"""... and if that happens by chance in at most this share of runs."""
MAX_SUBJECTS: Final = 400
"""Most frequent subjects of a person that are compared."""
MAX_INSIGHTS: Final = 20
"""Most insights about one person: those least likely by chance."""
_PARTS: Final = ("night", "morning", "afternoon", "evening")
_HOURS: Final = 6
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

Days = frozenset[date]


@dataclass(frozen=True, slots=True)
class _Found:
    chance: float
    text: str
    about: str
    sources: tuple[int, ...]


class PatternReflector:
    """A `Reflector` that needs no model. Times of day and weekdays are those of UTC."""

    name = "patterns"

    async def reflect(self, records: Sequence[MemoryRecord]) -> list[Insight]:
        """At which times each person mentions a subject, and which subjects go together, most certain first."""
        return await asyncio.to_thread(patterns, records)


def patterns(records: Sequence[MemoryRecord]) -> list[Insight]:
    """See `PatternReflector.reflect`; memories of the model and of tools do not count."""
    people: dict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        if record.role in ("user", None):
            people[record.author or ""].append(place)
    found: list[_Found] = []
    for person, places in people.items():
        found += sorted(_of_person(person, places, records), key=lambda each: (each.chance, each.text))[:MAX_INSIGHTS]
    return [Insight(text=each.text, about=each.about, sources=each.sources) for each in found]


def _of_person(person: str, places: Sequence[int], records: Sequence[MemoryRecord]) -> Iterator[_Found]:
    subjects, names = _subjects(places, records)
    when = {place: records[place].occurred_at for place in places}
    days = {word: frozenset(when[place].date() for place in said) for word, said in subjects.items()}
    often = sorted((word for word in days if len(days[word]) >= LEAST_DAYS), key=lambda word: (-len(days[word]), word))
    often = often[:MAX_SUBJECTS]
    everything = frozenset(moment.date() for moment in when.values())
    pairs = [(one, other) for one, other in combinations(often, 2) if len(days[one] & days[other]) >= LEAST_DAYS]
    least = CHANCE / max(1, len(often) * (len(_WEEKDAYS) + len(_PARTS)) + len(pairs))
    who = f"{person} mentions" if person else "Mentioned:"
    usual = _times(when.values())
    for word in often:
        times = _times(when[place] for place in subjects[word])
        for time, on in times.items():
            count, of = len(on), len(days[word])
            chance = _by_chance(count, of, len(usual[time]) / len(everything))
            if count >= LEAST_SHARE * of and chance <= least:
                text = f"{who} {names[word]!r} on {of} days, {count} of them {time}"
                yield _Found(chance, text, f"{person}\0{word}\0{time}", tuple(subjects[word]))
    for one, other in pairs:
        both, fewer = days[one] & days[other], min((one, other), key=lambda word: len(days[word]))
        more = other if fewer == one else one
        chance = _by_chance(len(both), len(days[fewer]), len(days[more]) / len(everything))
        if chance <= least:
            shared = tuple(sorted({*subjects[one], *subjects[other]}))
            text = f"{who} {names[fewer]!r} and {names[more]!r} together: on {len(both)} of {len(days[fewer])} days"
            yield _Found(chance, text, f"{person}\0{one}\0{other}", shared)


def _subjects(places: Sequence[int], records: Sequence[MemoryRecord]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """For each term, the memories with it, and its most frequent spelling."""
    said: dict[str, list[int]] = defaultdict(list)
    spelt: dict[str, Counter[str]] = defaultdict(Counter)
    for place in places:
        words = dict.fromkeys(ascii_words(records[place].text))
        terms = {word: analyse(word) for word in words if len(word) > 2 and not word.isdigit()}  # noqa: PLR2004
        for word, found in terms.items():
            for term in found[:1]:
                spelt[term][word] += 1
                if said[term][-1:] != [place]:
                    said[term].append(place)
    return said, {term: min(each, key=lambda word: (-each[word], word)) for term, each in spelt.items()}


def _times(moments: Iterable[datetime]) -> Mapping[str, Days]:
    """The days of these moments by weekday and by part of the day."""
    found: dict[str, set[date]] = defaultdict(set)
    for moment in moments:
        found[f"on a {_WEEKDAYS[moment.weekday()]}"].add(moment.date())
        found[f"in the {_PARTS[moment.hour // _HOURS]}"].add(moment.date())
    return {time: frozenset(days) for time, days in found.items()}


def _by_chance(count: int, of: int, share: float) -> float:
    """The probability of at least `count` among `of`, each with the probability `share`."""
    share = min(share, 1.0)
    return sum(math.comb(of, n) * share**n * (1 - share) ** (of - n) for n in range(count, of + 1))
