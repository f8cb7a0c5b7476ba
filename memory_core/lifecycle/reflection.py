"""Find patterns in many memories without a model: what comes back when, and what goes together. Pure functions.

A subject is a word that somebody uses on many days. Its days are compared with all days of that person by the binomial
test, so that a person who only ever writes on Mondays has no Monday subjects; with Bonferroni's correction for the
number of comparisons, a pattern in random memories is reported in about one of a hundred runs.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Final

from memory_core.lifecycle.proposals import Insight
from memory_core.lifecycle.sameness import statement_of
from memory_core.local_time import local_day, local_time
from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import analyse

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
LEAST_CHARS: Final = 3
_PARTS: Final = ("at night", "in the morning", "in the afternoon", "in the evening")
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
    """A `Reflector` that needs no model. Times of day and weekdays are those of the place."""

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
    said, names = _subjects(places, records)
    days = {word: frozenset(local_day(records[place]) for place in where) for word, where in said.items()}
    once = {tuple(said[word]): word for word in sorted(days, key=lambda word: (len(word), word))}  # one of a phrase
    often = sorted((word for word in once.values() if len(days[word]) >= LEAST_DAYS), key=lambda word: -len(days[word]))
    often = often[:MAX_SUBJECTS]
    pairs = [pair for pair in combinations(often, 2) if _may_go_together(pair, said, days, names)]
    least = CHANCE / max(1, len(often) * (len(_WEEKDAYS) + len(_PARTS)) + len(pairs))
    who = f"{person} mentions" if person else "Mentioned:"
    usual = _times(records[place] for place in places)
    total = len({local_day(records[place]) for place in places})
    for word in often:
        for time, on in _times(records[place] for place in said[word]).items():
            count, of, where = len(on), len(days[word]), tuple(said[word])
            chance = _by_chance(count, of, len(usual[time]) / total)
            if count >= LEAST_SHARE * of and chance <= least:
                text = f"{who} {word!r} on {of} days, {count} of them {time}"
                yield _Found(chance, text, f"{person}\0{word}\0{time}", where)
    for pair in pairs:
        fewer, more = sorted(pair, key=lambda word: len(days[word]))
        both, where = len(days[fewer] & days[more]), tuple(sorted({*said[fewer], *said[more]}))
        chance = _by_chance(both, len(days[fewer]), len(days[more]) / total)
        if chance <= least:
            text = f"{who} {fewer!r} and {more!r} on the same days: {both} of {len(days[fewer])}"
            yield _Found(chance, text, f"{person}\0{fewer}\0{more}", where)


def _may_go_together(
    pair: tuple[str, str], said: Mapping[str, Sequence[int]], days: Mapping[str, Days], names: AbstractSet[str]
) -> bool:
    """True if two subjects are worth comparing: on one day often enough, and not merely words of one phrase."""
    one, other = set(said[pair[0]]), set(said[pair[1]])
    is_phrase = bool(one & other) and names.isdisjoint(pair)
    return len(days[pair[0]] & days[pair[1]]) >= LEAST_DAYS and not is_phrase


def _subjects(places: Sequence[int], records: Sequence[MemoryRecord]) -> tuple[dict[str, list[int]], set[str]]:
    """For each word, the memories with it, without stop words and numbers; and the words that are names."""
    said: dict[str, list[int]] = defaultdict(list)
    names: set[str] = set()
    for place in places:
        statement = statement_of(records[place].text)
        of_names = {word for word, is_name in zip(statement.words, statement.is_name, strict=True) if is_name}
        for word in dict.fromkeys(statement.words):
            if len(word) >= LEAST_CHARS and word.isalpha() and analyse(word):
                said[word].append(place)
        names |= of_names
    return said, names


def _times(records: Iterable[MemoryRecord]) -> Mapping[str, Days]:
    """The days of these records by weekday and by part of the day."""
    found: dict[str, set[date]] = defaultdict(set)
    for record in records:
        found[f"on a {_WEEKDAYS[local_time(record).weekday()]}"].add(local_day(record))
        found[_PARTS[local_time(record).hour // _HOURS]].add(local_day(record))
    return {time: frozenset(days) for time, days in found.items()}


def _by_chance(count: int, of: int, share: float) -> float:
    """The probability of at least `count` among `of`, each with the probability `share`."""
    share = min(share, 1.0)
    return sum(math.comb(of, n) * share**n * (1 - share) ** (of - n) for n in range(count, of + 1))
