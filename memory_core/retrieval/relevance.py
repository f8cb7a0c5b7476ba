"""The relevance floor: decide which hits of a search are relevant at all.

There are two tests, both in spreads of the cosines of unrelated texts:

- Does the owner know anything about the query? The best of n unrelated texts stands about sqrt(2 ln n) spreads above
  their mean by chance alone. The best record has to come close to that, and closer for each name in the query that no
  record mentions.
- Is a record relevant by itself or through its neighbors? The stronger the best record, the more evidence the others
  need: beside a literal match a chance similarity is not a hit; without a better record it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.dense import chance

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
"""Least spread, for embedders that give unrelated texts nearly the same cosine, such as those of tests."""


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


def unrelated(vectors: NDArray[np.float32]) -> Unrelated:
    """The distribution for an embedder, from its unit vectors of `TEXTS`."""
    cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    return Unrelated(float(cosines.mean()), max(float(cosines.std()), LEAST_SPREAD))


Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

LEAST_EVIDENCE: Final = -1.0
"""Least evidence of a hit, in spreads, if the best record has none."""
SHARE_OF_BEST: Final = 0.1
"""Share of the best record's evidence beyond that which a hit needs in addition."""
FEWEST: Final = 10
"""Fewer records than this are judged as if they were this many."""
SLACK: Final = 1.25
"""How far the best record may stay below what chance gives, in spreads. At this value 99 % of the answerable questions
of every development corpus keep their evidence; the curve is in `docs/retrieval.md`."""
UNKNOWN_NAME: Final = 1.5
"""Additional evidence needed for each name that is in no record, in spreads."""
MOST_UNKNOWN: Final = 2
"""At most this many such names count."""


def is_answered(best: float, size: int, unknown_names: int = 0, known: float = 1.0) -> bool:
    """Whether the evidence of the best record is stronger than chance.

    Args:
        best: Its evidence, in spreads.
        size: How many records were compared.
        unknown_names: How many names in the query are in no record.
        known: How far the embedder knows the query's language; the less it does, the less the chance level counts.
    """
    if not size:
        return False
    return best > 0 and best >= known * (
        chance(max(size, FEWEST)) - SLACK + UNKNOWN_NAME * min(unknown_names, MOST_UNKNOWN)
    )


def stands_out(evidence: Floats) -> Mask:
    """The records that are hits, if the query is answered."""
    best = float(evidence.max(initial=0.0))
    found: Mask = evidence > LEAST_EVIDENCE + SHARE_OF_BEST * best
    return found
