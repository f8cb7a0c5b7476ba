"""Function words of a question: words of its language that say nothing about its subject.

English ones are in no index (`english.py`). Those of other languages are indexed, since the language of a short record
is not sure, and "die" and "war" are English words; a question has enough of them to tell its language, and they leave
its terms. Without that, a text that shares them with a French question comes before one that shares its subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.folding import fold
from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.every import LANGUAGES
from memory_core.retrieval.languages.language import Language

SURE: Final = 2
"""Least number of different function words that tell a language."""


def languages_of(text: str) -> Sequence[Language]:
    """Return the language that a text's function words tell; several that they tell alike; none where nothing is sure.

    A word tells the less the more languages have it, and names and quotations bring words of other languages into an
    English text, so a language other than English needs more than twice the evidence of English.
    """
    known = [found for word in {*_words(text)} if (found := _languages_by_word().get(word))]
    evidence = dict.fromkeys(LANGUAGES, 0.0)
    for languages in known:
        for language in languages:
            evidence[language] += 1 / len(languages)
    most = max(evidence.values())
    if most <= 2 * evidence[ENGLISH]:
        return [ENGLISH] if len(known) >= SURE else []
    told = [language for language in LANGUAGES if evidence[language] == most]
    return told if sum(told[0] in languages for languages in known) >= SURE else []


def without_function_words(terms: Sequence[str], text: str) -> Sequence[str]:
    """Return the terms of a question without the function words of its language, or all if nothing else is left."""
    functional = frozenset[str]().union(*map(_function_terms, languages_of(text)))
    return [term for term in terms if term not in functional] or terms


def _words(text: str) -> list[str]:
    return fold(text).replace("'", " ").split()


@cache
def _languages_by_word() -> Mapping[str, Sequence[Language]]:
    found = dict[str, list[Language]]()
    for language in LANGUAGES:
        for word in {*_words(language.function_words)}:
            found.setdefault(word, []).append(language)
    return found


@cache
def _function_terms(language: Language) -> frozenset[str]:
    return frozenset(analyse(language.function_words))
