"""Analyse a query: its terms, the people and dates it names, and whose words it asks for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core.retrieval.analysis import query_terms
from memory_core.retrieval.function_words import without_function_words
from memory_core.retrieval.time_expressions import (
    DateMention,
    asks_now,
    is_date_word,
    mentioned_dates,
)
from memory_core.values.limits import MAX_QUERY_TERMS

_WORD: Final = re.compile(r"[^\W_]+")
_THING: Final = re.compile(
    r"\b(?:the|a|an|my|our|your|his|her|its|their|this|that|these|those|no|any|some)\s+([^\W_]+)", re.IGNORECASE
)
"""A word after an article or another determiner."""
_CAPITAL: Final = re.compile(r"(?<![^\W_])[^\W\d_a-z][^\W_]*")
_SENTENCE_STARTS: Final = (".", "?", "!", ":", '"', "\u201c")
_ENGLISH: Final = frozenset(
    [
        *["what", "when", "where", "why", "how", "which", "who"],
        *["did", "does", "do", "would", "could", "is", "are", "the", "of"],
    ]
)
"""Words that identify English questions; in other languages a capital letter need not mean a name."""
_FORM: Final = re.compile(
    r"\b(?:what|which)\s(?P<form>(?:kind|type|sort)s?\sof)\b"
    r"|\b(?:is|are|was|were)\s(?:\w+\s){1,4}(?P<called>called)\b",
    re.IGNORECASE,
)
"""Words about the form of the answer, not its subject: "What kind of ...", "What is ... called?"."""
_FORM_WORDS: Final = ("kind", "type", "sort", "called")
_FIRST_PERSON: Final = frozenset(("i", "my", "mine", "myself"))
"""And "me" beside another English word: it is a word of other languages, too."""
_SECOND_PERSON: Final = frozenset(("you", "your", "assistant"))
_ASSISTANT: Final = re.compile(
    r"\b(?:(?:did|have|had|were) you"
    r"|you (?:(?:had|have|have already) )?(?:\w+ed|said|told|gave|wrote|put|made|found|say|suggest|recommend|mean)"
    r"|assistant"
    r"|your (?:answer|advice|suggestions?|recommendations?|reply|explanation|plan|proposal))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query, analysed once for all owners it is used with."""

    text: str
    terms: Sequence[str]
    names: frozenset[str]
    """The query's words in lower case that may be somebody's name, so not those after an article: in "Where is the
    coolant?" no author called coolant is meant. Names of authors among them are removed before it is embedded."""
    proper: frozenset[str]
    """The terms written as names: capitalised inside an English sentence, dates excluded."""
    asks_now: bool
    """Whether it is about the present: "Where do I live?"."""
    dates: Sequence[DateMention]
    about_user: bool
    """Whether it is in the first person: "Where did I park?" is answered by what the user said."""
    about_assistant: bool
    """Whether it asks what the assistant said: "What did you recommend?"."""


def parse(text: str) -> Query:
    """Analyse a query."""
    words = frozenset(match.lower() for match in _WORD.findall(text))
    things = frozenset(match.lower() for match in _THING.findall(text))
    is_to_assistant = not words.isdisjoint(_SECOND_PERSON) and _ASSISTANT.search(text) is not None
    terms = list(without_function_words(query_terms(_subject(text)), text))
    if len(terms) > MAX_QUERY_TERMS:
        terms = terms[: MAX_QUERY_TERMS // 2] + terms[-MAX_QUERY_TERMS // 2 :]
    return Query(
        text,
        terms,
        words - things,
        frozenset() if words.isdisjoint(_ENGLISH) else _proper(text),
        asks_now(text),
        mentioned_dates(text),
        about_user=not is_to_assistant and _is_first_person(words),
        about_assistant=is_to_assistant,
    )


def _is_first_person(words: frozenset[str]) -> bool:
    return not words.isdisjoint(_FIRST_PERSON) or ("me" in words and not words.isdisjoint(_ENGLISH))


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


def _subject(text: str) -> str:
    """The query without words that are only about the form of the answer."""
    if not any(word in text for word in _FORM_WORDS):
        return text
    for match in _FORM.finditer(text):
        start, stop = match.span(match.lastgroup or 0)
        text = text[:start] + " " * (stop - start) + text[stop:]
    return text


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
