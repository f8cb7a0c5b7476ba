"""What is pushed into a prompt unasked: only what is about the message, and only lines that add something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_core.models import Hit
from memory_core.recall.copies import Question
from memory_core.recall.values import Reason
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.small_talk import telling


def worth_pushing(asked: Question, hits: Sequence[Hit], surplus: Mapping[str, float]) -> dict[str, Reason]:
    """The reasons for leaving hits out of a prompt that did not ask for them, by the id of the hit.

    Nothing is pushed unless some hit says more about the message than chance and small talk do.

    Args:
        surplus: `Relevance.surplus` by the id of a hit; a hit that is missing was not compared, and counts.
    """
    if hits and max(surplus.get(hit.record.id, 1.0) for hit in hits) <= 0:
        return {hit.record.id: "small talk" for hit in hits}
    return {hit.record.id: "adds nothing" for hit in hits if not _adds(hit, asked)}


def _adds(hit: Hit, asked: Question) -> bool:
    """Whether a text has a word, number or name beyond the message and everyday replies ("Nice.", "Noted.")."""
    terms = [term for term in analyse(hit.record.text) if term not in asked.terms]
    return bool(telling(terms)) or any(map(str.isdigit, terms))
