"""Ask the questions, and measure what is found."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Any, Final

from memory_core.evaluation.baselines import Bm25, by_cosine, fused
from memory_core.evaluation.questions import Question, Resolved, resolve
from memory_core.every_record import every_record
from memory_core.handle import BoundMemory
from memory_core.models import Hit
from memory_core.recall.asked import Asked
from memory_core.recall.recalling import recall_for
from memory_core.recall.values import RecallOptions

OURS: Final = "memory-core"
KS: Final = (1, 5, 10)
"""The number of first hits that count."""
BUDGETS: Final = (600, 1_500, 4_000)
"""Characters of the blocks."""
LIMIT: Final = max(KS)

Search = Callable[[str], Awaitable[Sequence[Hit]]]
"""Finds hits for a question, best first."""


@dataclass(frozen=True, slots=True)
class QuestionRanks:
    """The hits for one question."""

    question: Question
    wanted: Sequence[frozenset[str]]
    """The ids of each expected memory: see `Resolved`."""
    ranks: Mapping[str, Sequence[int | None]]
    """By system: the best rank, from 1, of each expected memory among the first ten; `None` below."""
    in_block: Sequence[bool]
    """For each of `BUDGETS`, whether the block of `recall` has every expected memory."""
    is_silent: bool
    """True if the search found nothing."""

    def share(self, system: str, k: int) -> float:
        """The share of the expected memories among the first `k` hits."""
        ranks = self.ranks[system]
        return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The hits for all questions."""

    found: Sequence[QuestionRanks]

    @property
    def answerable(self) -> list[QuestionRanks]:
        """The questions that expect a memory."""
        return [each for each in self.found if each.question.expected]

    @property
    def systems(self) -> list[str]:
        """The names of what was measured, ours first."""
        return list(dict.fromkeys(name for each in self.found for name in each.ranks))

    def share(self, system: str, k: int) -> float:
        """The share of the expected memories among the first `k` hits, averaged over the questions; NaN without any."""
        return fmean([each.share(system, k) for each in self.answerable] or [math.nan])

    def difference(self, system: str, k: int) -> tuple[float, float]:
        """The part by which a system finds less than ours among the first `k`, and the standard error of that over the
        questions; the error is NaN for fewer than two."""
        gaps = [each.share(OURS, k) - each.share(system, k) for each in self.answerable]
        error = stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
        return fmean(gaps or [math.nan]), error

    def in_block(self, budget: int) -> float:
        """The share of the questions whose block of so many characters has every expected memory; NaN without any."""
        place = BUDGETS.index(budget)
        return fmean([each.in_block[place] for each in self.answerable] or [math.nan])

    @property
    def silent(self) -> float:
        """The share of the questions that expect nothing for which nothing was found; NaN without any."""
        return fmean([each.is_silent for each in self.found if not each.question.expected] or [math.nan])

    @property
    def missed(self) -> list[QuestionRanks]:
        """The questions of which our first ten hits lack an expected memory."""
        return [each for each in self.answerable if each.share(OURS, LIMIT) < 1]


def search_of(handle: BoundMemory, **settings: Any) -> Search:
    """A search of a memory for a question, with settings of `BoundMemory.search`."""
    return partial(handle.search, limit=LIMIT, **settings)


async def evaluate(
    handle: BoundMemory,
    questions: Sequence[Question],
    *,
    others: Mapping[str, Search] | None = None,
    has_vectors: bool = True,
    tell: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005  (the signature)
) -> Evaluation:
    """Ask every question of a memory and of plain retrievers over the same records.

    Args:
        handle: The memory.
        questions: The questions, and the records that each should find.
        others: Searches of the same records in other ways, by name.
        has_vectors: True if the memory has an embedder; else there is no cosine to compare with.
        tell: Called with the number of questions that are done, and of all.

    Raises:
        InvalidInputError: No memory has an expected id or expected words.
    """
    records = await every_record(handle)
    words = Bm25(records)
    found: list[QuestionRanks] = []
    for resolved in resolve(questions, records):
        rankings = {OURS: [hit.record.id for hit in await search_of(handle)(resolved.question.text)]}
        for name, other in (others or {}).items():
            rankings[name] = [hit.record.id for hit in await other(resolved.question.text)]
        rankings["BM25"] = words.rank(resolved.question.text)
        if has_vectors:
            rankings["cosine"] = await by_cosine(handle, resolved.question.text)
            rankings["fusion"] = fused(rankings["BM25"], rankings["cosine"])
        found.append(await _found(handle, resolved, rankings))
        tell(len(found), len(questions))
    return Evaluation(found)


async def _found(handle: BoundMemory, resolved: Resolved, rankings: Mapping[str, Sequence[str]]) -> QuestionRanks:
    ranks = {name: [_rank(wanted, ranking[:LIMIT]) for wanted in resolved.wanted] for name, ranking in rankings.items()}
    blocks = [await _recalled(handle, resolved.question.text, budget) for budget in BUDGETS] if resolved.wanted else []
    whole = [all(not wanted.isdisjoint(block) for wanted in resolved.wanted) for block in blocks]
    return QuestionRanks(resolved.question, resolved.wanted, ranks, whole, not rankings[OURS])


async def _recalled(handle: BoundMemory, question: str, budget: int) -> set[str]:
    recalled = await recall_for(handle, Asked(question, counts_reads=False), RecallOptions(max_chars=budget))
    return {record.id for record in recalled.records}


def _rank(wanted: frozenset[str], ranking: Sequence[str]) -> int | None:
    return next((rank for rank, key in enumerate(ranking, start=1) if key in wanted), None)
