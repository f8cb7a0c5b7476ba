"""Copies of the question among the hits: they are the nearest of all texts, although they say little about it.

Invariant: likeness to the question only orders; what is left out is the question itself. An answer often has all the
words of its question, a copy may have an answer, and an earlier question may be what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from unicodedata import category

from memory_core.concurrency.threads import yield_now
from memory_core.models import MemoryRecord
from memory_core.recall.keys import Key, key_of
from memory_core.retrieval.analysis import QUESTION_MARKS, analyse, pieces_of
from memory_core.retrieval.equal_texts import equal_form
from memory_core.retrieval.languages.english import OPENINGS, QUESTION_WORDS

COPIED: Final = 0.75
"""Share of the question's words that a copy has, at least, question words included, in whatever order."""
_FEWEST_WORDS: Final = 4
"""A statement often has all the words of a shorter question."""
_MARKS: Final = 3
"""A text longer than this many times the question cannot be the question with other punctuation and spaces."""
_WORD: Final = re.compile(r"\w+")
_QUESTION_WORDS: Final = frozenset(QUESTION_WORDS.split())
_OPENING: Final = _QUESTION_WORDS.union(OPENINGS.split())
"""First words of questions in English that are written without a question mark; "Will" may also be a name."""
_MAX_CHARS: Final = 200
"""Longer questions also give reasons, which are worth remembering."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with what is needed to compare texts with it."""

    text: str
    terms: frozenset[str]
    words: frozenset[str]
    runs: frozenset[str]
    form: str
    """The form that equal texts share, without question marks at the end."""


def question_of(text: str) -> Question:
    """Analyse a question."""
    form = equal_form(text).rstrip("?")
    return Question(text, frozenset(analyse(text)), _words(text.casefold()), frozenset(_runs(text)), form)


def the_same(records: Iterable[MemoryRecord], question: Question, *, shows_query: bool) -> set[Key]:
    """The messages of a user that are the question but for how they are written.

    Args:
        shows_query: True if the prompt shows the question. Else it may be a statement, which a message repeats.
    """
    return {key_of(each) for each in records if _is_the_same(each, question) and (shows_query or _is_asking(each.text))}


def _is_the_same(record: MemoryRecord, question: Question) -> bool:
    text = record.text
    return (
        record.role == "user"
        and bool(text.strip())
        and len(text) <= _MARKS * len(question.text)
        and equal_form(text).rstrip("?") == question.form
    )


def asking_again(records: Iterable[MemoryRecord], question: Question) -> set[Key]:
    """The messages that ask about what the question is about, and name nothing that the question does not name.

    Who asks again and again must find the answer before the earlier questions.
    """
    return {key_of(each) for each in records if _asks_again(each, question)}


def _asks_again(record: MemoryRecord, question: Question) -> bool:
    text = record.text
    if record.role not in ("user", None) or len(text) > _MAX_CHARS or not _is_asking(text):
        return False
    terms = frozenset(analyse(text))
    return names(text) <= question.words and len(terms & question.terms) * 3 >= len(terms)


def names(text: str) -> frozenset[str]:
    """The words after the first one that begin with a capital letter or have a digit, folded; without "I"."""
    words = _WORD.findall(text)[1:]
    return frozenset(
        word.casefold() for word in words if word != "I" and (word[0].isupper() or any(map(str.isdigit, word)))
    )


def _is_asking(text: str) -> bool:
    """True if a text ends in a question mark, of whatever script, or begins as questions in English
    do and has a question word."""
    if text[-1:] in QUESTION_MARKS:
        return True
    first = _WORD.search(text)
    return (
        first is not None
        and first[0].casefold() in _OPENING
        and not _QUESTION_WORDS.isdisjoint(_words(text.casefold()))
    )


def near_copies(records: Iterable[MemoryRecord], question: Question) -> set[Key]:
    """The records with nearly all the words of the question, question words included."""
    return {key_of(each) for each in records if _is_copy(each.text, question)}


def _is_copy(text: str, question: Question) -> bool:
    yield_now()  # the text may be long, and one of many
    folded, least = text.casefold(), COPIED * len(question.words)
    if len(question.words) < _FEWEST_WORDS or sum(word in folded for word in question.words) < least:
        return False  # without splitting the text: hardly any has so many of them, even as parts of words
    return len(question.words & _words(folded)) >= least


def telling_more(records: Iterable[MemoryRecord], question: Question, said: Iterable[str]) -> set[Key]:
    """The records with a word, in any script, that the question and the conversation lack.

    Args:
        said: The texts of the conversation.
    """
    folded = "\n".join(said).casefold()
    return {
        key_of(each)
        for each in records
        if any(run not in question.runs and not _has(folded, run) for run in _runs(each.text))
    }


def _has(folded: str, run: str) -> bool:
    """True if a text has such a run, found without splitting it, since a conversation may be long."""
    at = folded.find(run)
    while at >= 0:
        if _is_apart(folded[at - 1 : at]) and _is_apart(folded[at + len(run) : at + len(run) + 1]):
            return True
        at = folded.find(run, at + 1)
    return False


def _runs(text: str) -> Iterator[str]:
    """The folded runs of characters that are not spaces, control characters or punctuation; the first decide mostly,
    so they are found one by one."""
    for piece in pieces_of(text):
        for word in piece.casefold().split():
            yield from word.translate(_SPACED).split()


class _Spaced(dict[int, int]):
    """A table for `str.translate`, which turns what separates runs into spaces; it is filled as characters occur."""

    def __missing__(self, code: int) -> int:
        self[code] = given = ord(" ") if _is_apart(chr(code)) else code
        return given


_SPACED: Final = _Spaced()


def _is_apart(c: str) -> bool:
    """True if a character, or the end of a text, separates runs."""
    return not c or category(c)[0] in "PZC"


def _words(folded: str) -> frozenset[str]:
    return frozenset(_WORD.findall(folded))
