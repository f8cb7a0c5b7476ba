"""Everyday talk, which asks for nothing that a memory could know: what the evidence of a record has to exceed.

"Thanks!" and "Tell me a joke about penguins" are always about as near to some record as a question is. So a message
counts as being about something that is known only if a record is nearer to it than these phrases are. They are data of
the languages, compared as vectors and as words.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.languages.every import LANGUAGES
from memory_core.retrieval.languages.language import Language

if TYPE_CHECKING:
    from collections.abc import Iterable

PHRASES: Final = tuple(phrase for each in LANGUAGES for phrase in (*each.everyday, *each.requests))
REACTIONS: Final = "👍 👌 👏 🙏 🙂 😊 😀 😂 😉 ❤ 🎉 ✅"
"""Emoji that a message consists of when it says no more than "fine" or "thanks"."""


def telling(terms: Iterable[str]) -> list[str]:
    """The terms that can be the subject of a message: no everyday word, and no bare number."""
    everyday = everyday_terms()
    return [term for term in terms if term not in everyday and not term.isdigit()]


@cache
def everyday_terms(language: Language | None = None) -> frozenset[str]:
    """The terms of everyday talk in a language, or in any."""
    if language is None:
        return frozenset(analyse(REACTIONS)).union(*map(everyday_terms, LANGUAGES))
    return frozenset(analyse(" ".join((language.everyday_words, *language.everyday))))
