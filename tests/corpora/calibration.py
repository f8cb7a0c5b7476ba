"""The calibration curve of a corpus: what the floor under a search keeps and leaves out, for any slack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from unittest import mock

from memory_core import BoundMemory, Memory
from memory_core.retrieval import floor
from tests.corpora.loading import Owner, Question, owners

LIMIT = 25


@dataclass(frozen=True)
class Point:
    """A corpus at one slack; shares from 0 to 1."""

    kept: float
    """Of the questions whose evidence is found without the floor, those that find as much of it with the floor."""
    silent: float
    """Of the questions that nothing answers, those that find nothing."""


async def curve(corpus: str, slacks: Iterable[float]) -> dict[float, Point]:
    """The points of a corpus by slack."""
    kept: dict[float, list[bool]] = {slack: [] for slack in slacks}
    silent: dict[float, list[bool]] = {slack: [] for slack in kept}
    async with Memory(":memory:") as memory:
        for owner in owners(corpus):
            handle = memory.bind(app=corpus, user=owner.name)
            await handle.add_many(owner.records)
            await _add_owner(handle, owner, kept, silent)
    return {slack: Point(_share(kept[slack]), _share(silent[slack])) for slack in kept}


async def _add_owner(
    handle: BoundMemory, owner: Owner, kept: Mapping[float, list[bool]], silent: Mapping[float, list[bool]]
) -> None:
    for question in owner.questions:
        found: dict[float, frozenset[str]] = {}
        for slack in kept:
            with mock.patch.object(floor, "SLACK", slack):
                found[slack] = await _evidence(handle, question)
        is_complete = all(evidence == question.evidence for evidence in found.values())
        known = question.evidence if is_complete else await _evidence(handle, question, floor=False)
        for slack, evidence in found.items() if known else ():
            kept[slack].append(known <= evidence)
    for question in owner.unanswerable:
        for slack in silent:
            with mock.patch.object(floor, "SLACK", slack):
                silent[slack].append(not await handle.search(question.text, limit=LIMIT))


async def _evidence(handle: BoundMemory, question: Question, *, floor: bool = True) -> frozenset[str]:
    hits = await handle.search(question.text, limit=LIMIT, floor=floor)
    return question.evidence & {str(hit.record.source_key) for hit in hits}


def _share(answers: list[bool]) -> float:
    return sum(answers) / len(answers)
