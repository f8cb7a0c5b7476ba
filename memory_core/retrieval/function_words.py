"""The language of a question, and the words in it that say nothing about its subject.

English function words are in no index (`english.py`). Those of other languages are indexed, since the language of a
short record is not sure, and "die" and "war" are English words; a question has enough of them to tell its language.
What is said of everything ("I think so", "What a day") says as little.

Invariant: a word that says nothing about the subject of a question is faint. It counts a hundredth of another one
(`bm25.FAINT`), so it decides between texts that share the same words of the subject with the question, or none. The
less the embedder knows the words of a question, the more its faint words count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import lcm
from typing import Final

from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.every import LANGUAGES
from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.small_talk import everyday_terms
from memory_core.retrieval.telling_words import languages_by_word, words_of

SURE: Final = 2
"""Least number of different words that tell a language."""
_WHOLE: Final = lcm(*range(1, len(LANGUAGES) + 1))
"""The evidence of a word of one language, which any number of languages share without a rest, so that the order of the
words does not matter."""


def languages_of(text: str) -> Sequence[Language]:
    """Return the language that a text's words tell; several that they tell alike; none where nothing is sure.

    A word tells the less the more languages have it, and names and quotations bring words of other languages into an
    English text, so a language other than English needs more than twice the evidence of English.
    """
    by_word = languages_by_word()
    known = [by_word[word] for word in dict.fromkeys(words_of(text)) if word in by_word]
    evidence = dict.fromkeys(LANGUAGES, 0)
    for languages in known:
        for language in languages:
            evidence[language] += _WHOLE // len(languages)
    most = max(evidence.values())
    if most > 2 * evidence[ENGLISH]:
        told = [language for language in LANGUAGES if evidence[language] == most]
        if sum(told[0] in languages for languages in known) >= SURE:
            return told
        known = [languages for languages in known if ENGLISH in languages or not languages]
    return [ENGLISH] if len(known) >= SURE else []


def faint_words(terms: Sequence[str], languages: Sequence[Language]) -> frozenset[str]:
    """The terms that say nothing about the subject of a question in one of these languages; in any, if none is told."""
    return frozenset[str]().union(*map(_faint_terms, languages or (None,))).intersection(terms)


@cache
def _faint_terms(language: Language | None) -> frozenset[str]:
    """The function words of a language, and the words of everyday talk; without a language, these of all."""
    functional = () if language is None else analyse(language.function_words)
    return frozenset(term for term in everyday_terms(language).union(functional) if not term.isdigit())
