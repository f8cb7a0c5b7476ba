"""The degree to which a question is in English, told by its words: it says which of the two models is to be trusted.

Some words tell a language (`retrieval/telling_words.py`), and of those of other languages those count that the language
with most of them has. Other words say less, since names, technical terms and words of one language stand in the texts
of every other: a word that the English model has as a piece counts half for English, one that it lacks a quarter
against it. A word with a letter outside ASCII counts as a word that tells another language does, and so does a run of
another script. Names and numbers do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from memory_core.retrieval.folding import fold
from memory_core.retrieval.languages.english import ENGLISH
from memory_core.retrieval.languages.language import Language
from memory_core.retrieval.telling_words import languages_by_word

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
        is_piece: True if the English model has a word in lower case as one piece.
    """
    by_word = languages_by_word()
    english = other = 0.0
    others: Counter[Language] = Counter()
    for n, written in enumerate(_WORD.findall(text)):
        word = written.lower()
        languages = by_word.get(fold(written))
        if n and word[0] != written[0]:
            continue
        if languages is not None:
            if ENGLISH in languages:
                english += 1
            else:
                others.update(languages)
        elif not word.isascii():
            other += 1
        elif len(word) > _SHORT and is_piece(word):
            english += _PIECE
        elif len(word) > _SHORT:
            other += _NO_PIECE
    other += max(others.values(), default=0)
    share = (english + _BEFOREHAND) / (english + other + _BEFOREHAND)
    return min(max((share - _NONE) / (_ALL - _NONE), 0.0), 1.0)
