"""The worth of each number of the ranking: the recall that a search loses without it.

    python tests/benchmarks/constants.py [CORPUS ...] [--files FILE ...]

Each number is set to 0 while all others stay. A question's recall is the mean of its R@1, 5, 10 and 25; `worth` is how
many points of it are lost, averaged over the corpora, and `+-` the standard error of that average over the corpora.
Behind it stand the corpora where the number is worth most and least, with the standard errors over their questions.

The output is the table of `docs/measured.md`. The ranking was not developed on the corpora of `tests/corpora`.

--files   also files in LoCoMo's format; see `recall.py`
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Final
from unittest import mock

from memory_core import BoundMemory, Memory
from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.retrieval import ranking

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from recall import load
from tests.corpora.loading import CORPORA, Question, owners

KS: Final = (1, 5, 10, 25)
NUMBERS: Final[Mapping[str, str]] = {
    "WORDS": "weight of covered words",
    "DOUBT": "damping of partial matches",
    "LENT": "share lent to neighbors",
    "SESSION": "share of the best of a session",
    "HINT": "speaker and date",
    "ROLE": "who said it",
    "LENGTH": "full turns",
    "COMPARED": "the latest of like statements, for questions about the present",
}
"""Each number of `memory_core.retrieval.ranking` that weighs something, and what it weighs."""
OFF: Final[Mapping[str, int]] = {"COMPARED": 1}
"""The value at which a number does nothing, if that is not 0: a statement alone is compared with none."""


@dataclass(frozen=True)
class Asked:
    """A question and where it is asked."""

    handle: BoundMemory
    question: Question


@dataclass(frozen=True)
class Worth:
    """Points of recall that a corpus loses without a number."""

    corpus: str
    points: float
    error: float

    def __str__(self) -> str:
        return f"{self.corpus.replace('_', ' ')} {self.points:+.1f} +- {self.error:.1f}"


async def recalls(asked: Sequence[Asked]) -> list[float]:
    """The recall of each question, in per cent."""
    return [await _recall(one.handle, one.question) for one in asked]


async def _recall(handle: BoundMemory, question: Question) -> float:
    found = [str(hit.record.source_key) for hit in await handle.search(question.text, limit=max(KS))]
    return 100 * fmean(len(question.evidence.intersection(found[:k])) / len(question.evidence) for k in KS)


async def stored(memory: Memory, corpora: Sequence[str], files: Sequence[Path]) -> Mapping[str, Sequence[Asked]]:
    """The questions of every corpus, whose records the memory holds afterwards."""
    asked: dict[str, list[Asked]] = {corpus: [] for corpus in (*corpora, *(file.stem for file in files))}
    for corpus in corpora:
        for owner in owners(corpus):
            handle = memory.bind(app=corpus, user=owner.name)
            await handle.add_many(owner.records)
            asked[corpus] += [Asked(handle, question) for question in owner.questions]
    for file in files:
        for conversation in load(file):
            handle = memory.bind(app=file.stem, user=conversation.name)
            await handle.add_many(conversation.turns)
            asked[file.stem] += [
                Asked(handle, Question(question.text, frozenset(question.evidence)))
                for question in conversation.questions
            ]
    return asked


def worth(corpus: str, whole: Sequence[float], without: Sequence[float]) -> Worth:
    lost = [before - after for before, after in zip(whole, without, strict=True)]
    return Worth(corpus, fmean(lost), stdev(lost) / math.sqrt(len(lost)))


async def main(corpora: Sequence[str], files: Sequence[Path]) -> None:
    async with Memory(":memory:", embedder=MiniLmEmbedder()) as memory:
        asked = await stored(memory, corpora, files)
        whole = {corpus: await recalls(questions) for corpus, questions in asked.items()}
        print("| number | what it weighs | worth, points | most on | least on |\n|---|---|---|---|---|")
        for name, meaning in NUMBERS.items():
            with mock.patch.object(ranking, name, OFF.get(name, 0)):
                parts = [worth(corpus, whole[corpus], await recalls(some)) for corpus, some in asked.items()]
            points = [part.points for part in parts]
            error = stdev(points) / math.sqrt(len(points)) if len(points) > 1 else parts[0].error
            most, least = max(parts, key=lambda part: part.points), min(parts, key=lambda part: part.points)
            print(
                f"| `{name}` | {meaning} | {fmean(points):+.1f} +- {error:.1f} | {most} | {least} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"any of {', '.join(CORPORA)}; all by default")
    parser.add_argument("--files", nargs="*", type=Path, default=[], metavar="FILE")
    wanted = parser.parse_args()
    if unknown := set(wanted.corpora) - set(CORPORA):
        parser.error(f"no such corpus: {', '.join(sorted(unknown))}; there are {', '.join(CORPORA)}")
    asyncio.run(main(wanted.corpora or CORPORA, wanted.files))
