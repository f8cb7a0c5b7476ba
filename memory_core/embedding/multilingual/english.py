"""The degree to which a question is in English, told by its words: it says which of the two models is to be trusted.

Function words tell a language within a few words (`retrieval/languages/`). A word of English and of another language
says nothing, and of the others those count that the language with most of them has. Other words say less, since names,
technical terms and words of one language stand in the texts of every other: a word that the English model has as a
piece counts half for English, one that it lacks a quarter against it. A word with a letter outside ASCII counts as a
function word of another language does, and so does a run of another script. Names and numbers do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.every import LANGUAGES

_WORD: Final = re.compile(r"[^\W\d_]+")
_SHORT: Final = 3
"""Letters of a word that is a piece in any vocabulary."""
_PIECE: Final = 0.5
_NO_PIECE: Final = 0.25
_BEFOREHAND: Final = 0.25
"""The evidence for English before anything is read: a question of names only is one for the English model."""
_NONE, _ALL = 0.25, 0.6
"""The share of the evidence that speaks for English: up to the first a question is not in English at all, from the
second on it is."""


def how_english(text: str, is_piece: Callable[[str], bool]) -> float:
    """From 0 to 1, and 1 for a text without words.

    Args:
        is_piece: Whether the English model has a word in lower case as one piece.
    """
    languages_by_word = _languages_by_word()
    english = other = 0.0
    others: Counter[str] = Counter()
    for n, written in enumerate(_WORD.findall(text)):
        word = written.lower()
        languages = languages_by_word.get(word)
        if n and word[0] != written[0]:
            continue
        if languages is not None:
            if ENGLISH.code not in languages:
                others.update(languages)
            elif len(languages) == 1:
                english += 1
        elif not word.isascii():
            other += 1
        elif len(word) > _SHORT and is_piece(word):
            english += _PIECE
        elif len(word) > _SHORT:
            other += _NO_PIECE
    other += max(others.values(), default=0)
    share = (english + _BEFOREHAND) / (english + other + _BEFOREHAND)
    return min(max((share - _NONE) / (_ALL - _NONE), 0.0), 1.0)


@cache
def _languages_by_word() -> Mapping[str, Sequence[str]]:
    """The codes of the languages that have a word as a function word."""
    found: dict[str, list[str]] = {}
    for language in LANGUAGES:
        for word in {*language.function_words.split()}:
            found.setdefault(word, []).append(language.code)
    return found
