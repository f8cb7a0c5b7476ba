"""What is pushed into a prompt unasked: only what is about the message, and only lines that add something."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memory_core.models import Hit
from memory_core.recall.copies import Question
from memory_core.recall.values import Reason
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.small_talk import telling


def worth_pushing(asked: Question, hits: Sequence[Hit], surplus: Mapping[str, float]) -> dict[str, Reason]:
    """The reasons for leaving hits out of a prompt that did not ask for them, by the id of the hit.

    Nothing is pushed unless a hit that adds something says more about the message than chance and small talk do.

    Args:
        hits: Without those that the prompt shows already.
        surplus: `Relevance.surplus` by the id of a hit; a hit that is missing was not compared, and counts.
    """
    adding = {hit.record.id for hit in hits if adds(hit.record.text, asked.terms)}
    if all(surplus.get(key, 1.0) <= 0 for key in adding):
        return {hit.record.id: "small talk" for hit in hits}
    reasons: dict[str, Reason] = {hit.record.id: "adds nothing" for hit in hits if hit.record.id not in adding}
    for hit in hits:  # a turn may be found by the turns around it; a fact stands alone
        if hit.record.session is None and surplus.get(hit.record.id, 1.0) <= 0:
            reasons[hit.record.id] = "score"
    return reasons


def adds(text: str, known: Collection[str]) -> bool:
    """Whether a text has a word, number or name beyond the known terms and everyday replies ("Nice.", "Noted.")."""
    terms = [term for term in analyse(text) if term not in known]
    return bool(telling(terms)) or any(map(str.isdigit, terms))
