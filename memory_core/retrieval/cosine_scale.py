"""The scale of cosines: how near unrelated texts are to each other by chance, for each embedder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.unit_vectors import scaled

TEXTS: Final = (
    "The ferry to the northern islands leaves twice a day in summer.",
    "Could you remind me to water the plants on Friday?",
    "Our server ran out of disk space last night, and two jobs failed.",
    "I would like my eggs soft, please.",
    "The committee approved the budget for the new library.",
    "Copper conducts heat far better than steel.",
    "He has been training for the marathon since January.",
    "My knee still hurts when I climb the stairs.",
    "Their first album was recorded in a barn.",
    "The contract ends on the last day of March.",
    "The king was crowned at the age of nine.",
    "A cold front will bring rain to the coast.",
    "Our daughter lost her first tooth at school.",
    "I forgot my password and cannot log in.",
    "We planted three apple trees behind the house.",
    "The function returns an empty list if nothing is found.",
    "He plays chess with his neighbour every Tuesday.",
    "I am thinking of buying a used camera.",
    "The cat slept on the warm laptop.",
    "Which of these two jackets do you prefer?",
    "Most comets come from beyond the orbit of Neptune.",
    "The suitcase is too heavy for the overhead rack.",
    "Yes, I agree, let's do that tomorrow.",
    "Voters will decide on the proposal in May.",
)
"""Texts on different subjects."""

LEAST_SPREAD: Final = 0.01
"""Minimum spread, for embedders that give unrelated texts nearly the same cosine, such as those of tests."""


@dataclass(frozen=True, slots=True)
class Unrelated:
    """The distribution of the cosines of unrelated texts: the scale for all cosines of an embedder.

    Cosines of unrelated texts are 0.05 with a spread of 0.08 for one model and 0.7 with a spread of 0.03 for another,
    so a cosine by itself says little. Expressed in spreads above the mean of unrelated texts, it is comparable between
    models, and between an owner of three records and one of a million.
    """

    mean: float
    spread: float
    """Standard deviation, above 0."""

    def spreads(self, cosine: float) -> float:
        """The number of spreads by which a cosine stands above the mean."""
        return (cosine - self.mean) / self.spread

    def taken_from(self, other: Unrelated, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines of another scale as those of this one that stand as many spreads above the mean."""
        factor = self.spread / other.spread
        taken: NDArray[np.float32] = cosines * np.float32(factor) + np.float32(self.mean - other.mean * factor)
        return taken


@dataclass(frozen=True, slots=True)
class Leaned:
    """A comparison of texts in which some numbers of a vector count more than others (`Leaning`)."""

    weights: NDArray[np.float32]
    """The weight of each number of the vector that texts are compared with."""
    unrelated: Unrelated
    """The cosines of unrelated texts that are compared so."""

    def of(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vector to compare texts with instead of this one, at unit length."""
        unit: NDArray[np.float32] = scaled((vector * self.weights)[None])[0]
        return unit


def unrelated(vectors: NDArray[np.float32], queries: NDArray[np.float32] | None = None) -> Unrelated:
    """The distribution for an embedder, from its unit vectors of `TEXTS`, and those of the same texts as queries, if
    they are others."""
    products = vectors @ (vectors if queries is None else queries).T
    cosines = products[~np.eye(len(vectors), dtype=np.bool_)]
    return Unrelated(float(cosines.mean()), max(float(cosines.std()), LEAST_SPREAD))
