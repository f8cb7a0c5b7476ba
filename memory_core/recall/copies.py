"""Copies of the question among the hits: they are the nearest of all texts, and worth only what they add to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import analyse, asks
from memory_core.retrieval.equal_texts import equal_form

COPIED: Final = 0.6
"""Share of the question's pairs of neighboring words that a copy has, at least. An answer turns the question round
("Where is the key?", "The key is ..."), so it has few of them."""
_FEWEST_PAIRS: Final = 2
"""With fewer pairs, a statement often has them all: "green tea"."""
_MARKS: Final = 3
"""A text longer than this many times the question cannot be the question with other punctuation and spaces."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with what is needed to compare texts with it."""

    text: str
    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]


def question(text: str) -> Question:
    """Analyse a question."""
    return Question(text, frozenset(analyse(text)), _pairs(text))


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


def added_share(text: str, asked: Question) -> float:
    """What a text is worth beside the question: 1 unless it copies the question, else the share of its terms that the
    question does not have."""
    if len(asked.pairs) < _FEWEST_PAIRS or len(asked.pairs & _pairs(text)) < COPIED * len(asked.pairs):
        return 1.0
    terms = set(analyse(text))
    return len(terms - asked.terms) / len(terms) if terms else 0.0


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    words = _WORD.findall(text.casefold())
    return frozenset(zip(words, words[1:], strict=False))
