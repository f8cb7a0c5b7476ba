"""The language of a stored text, as far as the ranking asks for it: English, or another one.

A text counts as one in another language only if it is sure: it is mostly in another script, its words tell another
language (`telling_words.py`), or nothing tells its language and it has a letter outside ASCII.
"""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.function_words import languages_of
from memory_core.retrieval.languages.english import ENGLISH

READ: Final = 1_000
"""Characters of a text that tell its language."""
_LATIN_ENDS: Final = "\u0250"


def is_in_another_language(text: str) -> bool:
    """True if a text is surely in another language than English."""
    beginning = text[:READ]
    letters = "" if beginning.isascii() else "".join(filter(str.isalpha, beginning))
    if 2 * sum(letter >= _LATIN_ENDS for letter in letters) > len(letters):
        return True
    languages = languages_of(beginning)
    return ENGLISH not in languages if languages else not letters.isascii()
