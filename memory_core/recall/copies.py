"""Copies of the question among the hits: they are the nearest of all texts, although they say little about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import analyse, asks
from memory_core.retrieval.equal_texts import equal_form

COPIED: Final = 0.75
"""Share of the question's words that a copy has, at least, question words included, in whatever order."""
_FEWEST_WORDS: Final = 4
"""A statement often has all the words of a shorter question."""
_MARKS: Final = 3
"""A text longer than this many times the question cannot be the question with other punctuation and spaces."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with what is needed to compare texts with it."""

    text: str
    terms: frozenset[str]
    words: frozenset[str]


def question(text: str) -> Question:
    """Analyse a question."""
    return Question(text, frozenset(analyse(text)), _words(text))


def is_the_same(record: MemoryRecord, asked: Question) -> bool:
    """Whether a user's message is the question but for how it is written."""
    text = record.text
    return (
        record.role == "user"
        and len(text) <= _MARKS * len(asked.text)
        and equal_form(text).rstrip("?") == equal_form(asked.text).rstrip("?")
    )


def asks_nothing_else(record: MemoryRecord, asked: Question) -> bool:
    """Whether a text asks, and without a term that the question lacks."""
    text = record.text
    return record.role in ("user", None) and asks(text[-1:]) and asked.terms.issuperset(analyse(text))


def is_copy(text: str, asked: Question) -> bool:
    """Whether a text has nearly all the words of the question, question words included."""
    return len(asked.words) >= _FEWEST_WORDS and len(asked.words & _words(text)) >= COPIED * len(asked.words)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
