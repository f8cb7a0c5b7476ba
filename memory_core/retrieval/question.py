"""Analyse a query: its terms, the people and dates it names, and whose words it asks for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

from memory_core.retrieval.analysis import query_terms
from memory_core.retrieval.function_words import faint_words, languages_of
from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.time_expressions import (
    DateMention,
    asks_now,
    is_date_word,
    mentioned_dates,
    month_name,
    resolve,
)
from memory_core.values.limits import MAX_QUERY_TERMS

_WORD: Final = re.compile(r"[^\W_]+")
_CAPITAL: Final = re.compile(r"(?<![^\W_])[^\W\d_a-z][^\W_]*")
_ENGLISH_WORDS: Final = frozenset(ENGLISH.function_words.split())
"""Words that a text in which a capital letter marks a name has at least one of: in other languages it need not."""
_SENTENCE_STARTS: Final = (".", "?", "!", ":", '"', "\u201c")


@dataclass(frozen=True, slots=True)
class Query:
    """A query, analysed once for all owners it is used with."""

    text: str
    terms: Sequence[str]
    faint: frozenset[str]
    """The terms that say nothing about its subject."""
    translated: frozenset[str]
    """The terms that it has in another language: names of months, which are English in the date of a record."""
    names: frozenset[str]
    """The query's words in lower case. Names of authors among them are removed before it is embedded."""
    proper: frozenset[str]
    """The terms written as names: capitalised inside an English sentence, dates excluded."""
    asks_now: bool
    """True if it is about the present: "Where do I live?"."""
    dates: Sequence[DateMention]
    about_user: bool
    """True if it is in the first person: "Where did I park?" is answered by what the user said."""
    about_assistant: bool
    """True if it asks what the assistant said: "What did you recommend?"."""

    @property
    def written(self) -> Sequence[str]:
        """The terms of its own words."""
        return [term for term in self.terms if term not in self.translated]


def parse(text: str, today: date | None = None) -> Query:
    """Analyse a query, by the language that its words tell, or as an English one.

    Args:
        text: The query.
        today: The day from which "yesterday" in it counts; without one, only absolute dates are found.
    """
    languages = languages_of(text)
    assumed = languages or [ENGLISH]
    words = frozenset(match.lower() for match in _WORD.findall(text))
    is_to_assistant = any(found.search(text) for each in assumed if (found := _assistant(each)))
    dates = _dates(text, today)
    written = query_terms(text)
    terms = list(dict.fromkeys((*written, *query_terms(" ".join(map(month_name, dates))))))
    if len(terms) > MAX_QUERY_TERMS:
        terms = terms[: MAX_QUERY_TERMS // 2] + terms[-MAX_QUERY_TERMS // 2 :]
    return Query(
        text,
        terms,
        faint_words(terms, languages),
        frozenset(terms).difference(written),
        words,
        frozenset() if ENGLISH not in assumed or _ENGLISH_WORDS.isdisjoint(words) else _proper(text),
        asks_now(text, assumed),
        dates,
        about_user=not is_to_assistant and any(not words.isdisjoint(each.first_person.split()) for each in assumed),
        about_assistant=is_to_assistant,
    )


def _dates(text: str, today: date | None) -> list[DateMention]:
    """The dates that a query names, and those that it means by "yesterday" and the like."""
    meant = [] if today is None else resolve(text, today)
    return mentioned_dates(" ".join((text, *(f"; in {each}" for each in meant))))


@cache
def _assistant(language: Language) -> re.Pattern[str] | None:
    return re.compile(language.assistant, re.IGNORECASE) if language.assistant else None


def without_names(query: str, names: Collection[str]) -> str:
    """The query without the participants' names (lower-case), for the embedder.

    Every turn of a speaker is close to the speaker's name, so a name hides the subject of the question (removing it
    adds eleven points of recall by cosine).
    """
    if not names:
        return query
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    rest = re.sub(rf"\b(?:{pattern})\b(?:['\u2019]s\b)?", "", query, flags=re.IGNORECASE)
    return " ".join(rest.split()).strip(" ?") or query


def _proper(text: str) -> frozenset[str]:
    """The terms of words capitalised inside a sentence, except months and days."""
    if text[1:].islower():
        return frozenset()
    found: set[str] = set()
    for match in _CAPITAL.finditer(text):
        before = text[: match.start()].rstrip()
        is_inside = before and not before.endswith(_SENTENCE_STARTS)
        if is_inside and match[0][0].isupper() and not is_date_word(match[0]):
            found.update(query_terms(match[0]))
    return frozenset(found)
