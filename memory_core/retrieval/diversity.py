"""Diversify hits by maximal marginal relevance (MMR).

Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries": hits are chosen one by one, each the best by

    (1 - diversity) * relevance  -  diversity * similarity to the nearest hit chosen before

Relevance is the score divided by the best one. The similarity of two passages is the number of shared terms over the
geometric mean of their numbers of terms (1 for the same words, 0 for no word in common). It needs no vectors, so every
store gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Final

from memory_core.errors import InvalidInputError
from memory_core.models import Component, Hit
from memory_core.retrieval.analysis import analyse

CANDIDATES_PER_HIT: Final = 4
MIN_CANDIDATES: Final = 50
"""Number of the best hits to choose from."""
MAX_HITS: Final = 100
"""Maximum number of hits that can be chosen, since each choice compares all candidates."""


def candidates(limit: int) -> int:
    """The number of hits from which `limit` are chosen.

    Raises:
        InvalidInputError: More than `MAX_HITS` are wanted.
    """
    if limit > MAX_HITS:
        raise InvalidInputError(f"diversity is for a limit of up to {MAX_HITS} hits, not {limit}")
    return max(MIN_CANDIDATES, CANDIDATES_PER_HIT * limit)


def diversified(hits: Sequence[Hit], limit: int, diversity: float) -> list[Hit]:
    """Choose `limit` of the hits by the formula above, best first; their scores are its values.

    Args:
        hits: Best first.
        diversity: From 0 (relevance alone) to 1 (the best hit, then always the one least similar to those chosen).
    """
    terms = [frozenset(analyse(hit.passage.text if hit.passage else hit.record.text)) for hit in hits]
    best = max((hit.score for hit in hits), default=0.0)
    weight = (1 - diversity) / best if best > 0 else 1 - diversity
    nearest = [0.0] * len(hits)
    left = list(range(len(hits)))
    chosen: list[Hit] = []
    while left and len(chosen) < limit:
        place = max(left, key=lambda n: (weight * hits[n].score - diversity * nearest[n], -n))
        left.remove(place)
        chosen.append(_weighed(hits[place], weight, diversity, nearest[place]))
        for other in left:
            nearest[other] = max(nearest[other], similarity(terms[other], terms[place]))
    return chosen


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The similarity of two sets of terms, from 0 to 1; 0 if both are empty."""
    return len(one & other) / sqrt(len(one) * len(other)) if one and other else 0.0


def _weighed(hit: Hit, weight: float, diversity: float, nearest: float) -> Hit:
    score = weight * hit.score - diversity * nearest
    if hit.components is None:
        return replace(hit, score=score)
    parts = {name: replace(part, weighted=weight * part.weighted) for name, part in hit.components.items()}
    if nearest:
        parts["diversity"] = Component(nearest, -diversity * nearest)
    return replace(hit, score=score, components=parts)
