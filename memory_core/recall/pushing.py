"""The lines that are pushed into a prompt unasked: only what is about the message, and adds something."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from memory_core.local_time import local_day
from memory_core.models import Hit, MemoryRecord
from memory_core.recall.copies import Question
from memory_core.recall.keys import Key, key_of
from memory_core.recall.values import Reason
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.small_talk import everyday_terms
from memory_core.retrieval.time_expressions import resolve

_BEGINNING: Final = 32
"""Characters of a text that are read first: they mostly have a word that decides."""


def worth_pushing(question: Question, hits: Sequence[Hit], surplus: Mapping[Key, float]) -> dict[Key, Reason]:
    """The reasons for leaving hits out of a prompt that did not ask for them, by the key of the hit.

    Nothing is pushed unless a hit that adds something says more about the message than chance and small talk do.

    Args:
        hits: Without those that the prompt shows already.
        surplus: `Relevance.surplus` by the key of a hit; a hit that is missing was not compared, and counts.
    """
    records = {key_of(hit.record): hit.record for hit in hits}
    telling = {key for key in records if surplus.get(key, 1.0) > 0}
    adding = {key for key, record in records.items() if adds(record, question.terms)}
    if not adding & telling:
        return dict.fromkeys(records, "small talk")
    reasons: dict[Key, Reason] = {key: "adds nothing" for key in records if key not in adding}
    for key, record in records.items():  # a turn may be found by the turns around it; a fact stands alone
        if record.session is None and key not in telling:
            reasons[key] = "small talk"
    return reasons


def adds(record: MemoryRecord, known: Collection[str]) -> bool:
    """True if a text has a word, number or name beyond the known terms and everyday replies ("Nice.", "Noted."), or
    says on which day it was ("I was at the dentist today")."""
    text, everyday = record.text, everyday_terms()

    def has_more(part: str) -> bool:
        found = analyse(part) if part else ()
        return any(term not in known and (term.isdigit() or term not in everyday) for term in found)

    cut = text.find(" ", _BEGINNING) + 1
    return has_more(text[:cut]) or has_more(text[cut:]) or has_more(" ".join(resolve(text, local_day(record))))
