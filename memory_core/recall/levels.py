"""Choose the level at which something is told: a fact, the turn it was said in, or a summary. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memory_core.models import MemoryRecord, Relation
from memory_core.recall.candidates import Candidate
from memory_core.recall.values import Reason

LeaveOut = Callable[[MemoryRecord, Reason, str], None]
"""Called with a record that is left out, the reason, and the id of the record that tells the same."""


def at_one_level(candidates: Sequence[Candidate], wanted: frozenset[str], leave_out: LeaveOut) -> list[Candidate]:
    """The candidates, best first, without those whose content another level tells.

    - A fact replaces the turn it was derived from if it has all terms of the question that the turn has; otherwise the
      turn replaces the fact. The one that stays takes the better place of the two.
    - A summary comes after the turns that it summarises, and is left out if these have all terms of the question that
      it has.

    Args:
        wanted: The terms of the question.
    """
    known = {candidate.record.id: candidate for candidate in candidates}
    kept = dict(known)
    for fact in candidates:
        for turn in _sources(fact, "derived_from", kept):
            if fact.record.id in kept:
                _keep_one(fact, turn, wanted, kept, leave_out)
    order = sorted(kept.values(), key=lambda candidate: -candidate.hit.score)
    for summary in candidates:
        turns = _sources(summary, "summarizes", known)
        if turns and summary in order:
            order.remove(summary)
            if summary.terms & wanted <= frozenset[str]().union(*(turn.terms for turn in turns)):
                leave_out(summary.record, "duplicate", turns[0].record.id)
            else:
                order.insert(
                    max((n for n, each in enumerate(order) if each in turns), default=len(order) - 1) + 1, summary
                )
    return order


def _keep_one(
    fact: Candidate, turn: Candidate, wanted: frozenset[str], kept: dict[str, Candidate], leave_out: LeaveOut
) -> None:
    stays, goes = (fact, turn) if turn.terms & wanted <= fact.terms else (turn, fact)
    best = max(fact.hit, turn.hit, key=lambda hit: hit.score)
    hit = replace(stays.hit, score=best.score, similarity=best.similarity)
    kept[stays.record.id] = replace(stays, hit=hit)
    kept.pop(goes.record.id, None)
    leave_out(goes.record, "duplicate", stays.record.id)


def _sources(candidate: Candidate, relation: Relation, kept: Mapping[str, Candidate]) -> list[Candidate]:
    links = candidate.record.links
    return [kept[link.id] for link in links if link.relation == relation and link.id in kept]
