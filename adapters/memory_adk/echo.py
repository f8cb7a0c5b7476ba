"""Telling an answer that only repeats what was recalled from one that says something new: pure functions.

Stored, a repetition would be recalled next time in place of what it repeats, and be repeated again. Storing one is a
nuisance, though, and losing something new is a loss, so in doubt an answer is new.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

REPEATED: Final = 0.45
"""From this share of known letter triples on, an answer is a repetition. Of answers we made up, those that repeat a
memory in other words have 0.34 to 0.77, those that say something new 0.07 to 0.32."""

_QUESTION_MARKS: Final = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_NOT_WORD: Final = re.compile(r"\W+")
_NUMBER: Final = re.compile(r"\d+")


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def is_echo(answer: str, question: str, recalled: Sequence[str]) -> bool:
    """Whether an answer to a question consists mostly of what was recalled for it.

    What is no question gets no echo ("Done, your flight LH123 is cancelled" repeats a lot and is news), and neither
    does an answer with a number that is in no memory. Triples of letters are compared rather than words, so that
    inflected words and languages without spaces count.
    """
    if not recalled or not is_question(question):
        return False
    known = [question, *recalled]
    if not _numbers([answer]) <= _numbers(known):
        return False
    said = _triples(answer)
    return bool(said) and len(said & set[str]().union(*map(_triples, known))) >= REPEATED * len(said)


def _numbers(texts: Sequence[str]) -> set[str]:
    return {number for text in texts for number in _NUMBER.findall(text)}


def _triples(text: str) -> set[str]:
    padded = f" {_NOT_WORD.sub(' ', text.casefold()).strip()} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)} if padded.strip() else set()
