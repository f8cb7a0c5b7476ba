"""The meaning of distances with the default embedder, and the memories that the rankings of `memory_search` find.

    python tests/benchmarks/distances.py [CORPUS ...]

Every question is asked of all records of its owner, in the order of distance. A row says for a band of the Skynet
document how many of the records that answer (`answers`) and of all others (`others`) lie in it, and in how many
unanswerable questions the nearest record does (`nearest of nothing`), in per cent. The last two rows say for each
ranking how many per cent of the records that answer are among the first 5, and to how many unanswerable questions
nothing is found.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_core import BoundMemory, Memory
from tests.corpora.loading import CORPORA, Owner, owners

BANDS: Final = (0.0, 0.2, 0.5, 0.8, 1.01)
RESULTS: Final = 5
"""The number of results that `memory_search` returns unless it is asked for more."""


@dataclass(frozen=True)
class Distances:
    answers: list[float] = field(default_factory=list[float])
    others: list[float] = field(default_factory=list[float])
    nothing: list[float] = field(default_factory=list[float])
    nearest_found: list[float] = field(default_factory=list[float])
    """Of each question that is answered, the share of its answers among the nearest 5."""
    relevant_found: list[float] = field(default_factory=list[float])
    """The same of the most relevant 5."""
    silent: list[float] = field(default_factory=list[float])
    """Of each question that nothing answers, 1 if the ranking by relevance finds nothing."""


async def measure(handle: BoundMemory, owner: Owner, distances: Distances) -> None:
    """Add what the questions of one owner show."""
    await handle.add_many(owner.records)
    for question in [*owner.questions, *owner.unanswerable]:
        hits = await handle.search(question.text, limit=1_000, mode="vector", floor=False)
        away = {str(hit.record.source_key): 1 - (hit.similarity or 0.0) for hit in hits}
        relevant = [str(hit.record.source_key) for hit in await handle.search(question.text, limit=RESULTS)]
        if not question.evidence:
            distances.nothing.append(min(away.values()))
            distances.silent.append(not relevant)
            continue
        distances.nearest_found.append(share(question.evidence, list(away)[:RESULTS]))
        distances.relevant_found.append(share(question.evidence, relevant))
        distances.answers.extend(away[key] for key in question.evidence)
        distances.others.extend(distance for key, distance in away.items() if key not in question.evidence)


def share(wanted: AbstractSet[str], found: Sequence[str]) -> float:
    """The share of what is wanted that was found, from 0 to 1."""
    return len(wanted & set(found)) / len(wanted)


def shares(values: Sequence[float]) -> list[float]:
    """Per cent of the values in each band."""
    bands = itertools.pairwise(BANDS)
    return [100 * sum(low <= value < high for value in values) / len(values) for low, high in bands]


def median(values: Iterable[float]) -> float:
    """The middle one."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


async def main(corpora: Sequence[str]) -> None:
    """Print a table for each corpus."""
    for corpus in corpora:
        distances = Distances()
        async with Memory(":memory:") as memory:
            for owner in owners(corpus):
                await measure(memory.bind(app=corpus, user=owner.name), owner, distances)
        columns = (distances.answers, distances.others, distances.nothing)
        print(f"{corpus:<18} answers  others  nearest of nothing")
        for (low, high), *row in zip(itertools.pairwise(BANDS), *map(shares, columns), strict=True):
            print(f"  {low:.1f} to {min(high, 1):.1f}    " + "".join(f"{share:9.1f}" for share in row))
        print("  median        " + "".join(f"{median(column):9.2f}" for column in columns))
        print(f"  found among {RESULTS}: nearest {100 * fmean(distances.nearest_found):.1f}, ", end="")
        print(f"most relevant {100 * fmean(distances.relevant_found):.1f}")
        print(f"  nothing found where nothing answers: {100 * fmean(distances.silent):.1f}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or CORPORA))
