"""The lines that are pushed into a prompt unasked: only what is about the message, and adds something."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memory_core.local_time import local_day
from memory_core.models import Hit, MemoryRecord
from memory_core.recall.copies import Question
from memory_core.recall.keys import Key, key_of
from memory_core.recall.values import Reason
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.small_talk import telling
from memory_core.retrieval.time_expressions import resolve


def worth_pushing(question: Question, hits: Sequence[Hit], surplus: Mapping[Key, float]) -> dict[Key, Reason]:
    """The reasons for leaving hits out of a prompt that did not ask for them, by the key of the hit.

    Nothing is pushed unless a hit that adds something says more about the message than chance and small talk do.

    Args:
        hits: Without those that the prompt shows already.
        surplus: `Relevance.surplus` by the key of a hit; a hit that is missing was not compared, and counts.
    """
    keys = [key_of(hit.record) for hit in hits]
    adding = {key for key, hit in zip(keys, hits, strict=True) if adds(hit.record, question.terms)}
    if all(surplus.get(key, 1.0) <= 0 for key in adding):
        return dict.fromkeys(keys, "small talk")
    reasons: dict[Key, Reason] = {key: "adds nothing" for key in keys if key not in adding}
    for key, hit in zip(keys, hits, strict=True):  # a turn may be found by the turns around it; a fact stands alone
        if hit.record.session is None and surplus.get(key, 1.0) <= 0:
            reasons[key] = "small talk"
    return reasons


def adds(record: MemoryRecord, known: Collection[str]) -> bool:
    """True if a text has a word, number or name beyond the known terms and everyday replies ("Nice.", "Noted."), or
    says on which day it was ("I was at the dentist today")."""
    days = resolve(record.text, local_day(record))
    terms = [term for term in analyse(" ".join((record.text, *days))) if term not in known]
    return bool(telling(terms)) or any(map(str.isdigit, terms))
