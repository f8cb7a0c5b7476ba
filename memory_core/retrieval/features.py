"""What is learnt from a record when it is written: its searchable terms and what kind of turn it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import asks, index_terms, words
from memory_core.retrieval.timex import format_date, has_time_expression, resolve

ANALYSIS: Final = 2
"""Raised whenever a text may get other terms, flags or words than before: what is stored is then analysed anew."""

QUESTION: Final = 1
"""Flag: the text asks something, so the next turn probably answers it."""
TIMED: Final = 2
"""Flag: the text names a time, so it may answer a question that asks when."""

PREDECESSOR_CHARS: Final = 160
"""How much of the end of the turn before is embedded with a turn: enough for a question, not enough to drown what
answers it (160 finds a point more of the development split's evidence at 5 than 320 or all of it)."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the full-text index and the ranking need to know of a record."""

    terms: str
    """Analysed terms, separated by spaces: date, author, text, and relative dates made absolute."""
    flags: int
    words: int


def features(record: MemoryRecord) -> Features:
    """Analyse a record. The date and the author count as part of the text because questions name them
    (each is worth about two points of recall on conversations)."""
    text = record.text
    if not text:
        return Features("", 0, 0)
    dates = resolve(text, record.occurred_at)
    said = f"{format_date(record.occurred_at)} {record.author or ''} {text} {' '.join(dates)}"
    flags = (QUESTION if asks(text) else 0) | (TIMED if has_time_expression(text) else 0)
    return Features(" ".join(index_terms(said)), flags, words(text))


def spoken(author: str | None, text: str) -> str:
    """A turn as it is embedded."""
    return f"{author}: {text}" if author else text


def in_context(author: str | None, text: str, before: tuple[str | None, str] | None) -> str:
    """A turn as it is embedded, after the turn before it (author, text) of the same session, if there is one.

    "Yes, on Friday!" means little without the question it answers.
    """
    if before is None:
        return spoken(author, text)
    return f"{spoken(before[0], before[1][-PREDECESSOR_CHARS:])}\n{spoken(author, text)}"
