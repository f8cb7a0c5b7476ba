"""The words that tell a language: its function words and its number words, folded.

A word of English that another language has, too, tells nothing: "ten" and "one" are Polish function words, and "a" is
one of six languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from memory_core.retrieval.folding import fold
from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.every import LANGUAGES
from memory_core.retrieval.languages.language import Language


def words_of(text: str) -> Sequence[str]:
    """Return the words of a text, folded; an apostrophe ends one."""
    return fold(text).replace("'", " ").split()


@cache
def languages_by_word() -> Mapping[str, Sequence[Language]]:
    """Return the languages that each word tells: English alone, or others, or none."""
    found = dict[str, list[Language]]()
    for language in LANGUAGES:
        numbers = () if language.times is None else language.times.counts
        for word in {*words_of(" ".join((language.function_words, *numbers)))}:
            found.setdefault(word, []).append(language)
    return {word: () if ENGLISH in some and len(some) > 1 else tuple(some) for word, some in found.items()}
