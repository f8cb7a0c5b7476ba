"""Choose the hits of a search that may get a line in a block, and the order in which they do: pure functions.

A hit is left out if it may not stand in the block (`unfit`), is the question itself, repeats another line, or is
less relevant than the options ask for; a pushed block also leaves out what adds nothing (`pushing`). What is merely
less useful comes later, and gets its line if there is room.

Invariant: the best hit that says more than the question and the visible conversation comes first, and so do the next
two, among several authors one of each stranger: they stand in every block with room, whatever reorders the others.
Among these three, a stranger's line comes after comparable ones of whom the owner knows, and a copy of the question
last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from memory_core.models import Hit, MemoryRecord
from memory_core.recall.asking import Found, InContext
from memory_core.recall.authors import COMPARABLE, in_fair_order, is_shared
from memory_core.recall.copies import (
    Question,
    asking_again,
    near_copies,
    question_of,
    telling_more,
    the_same,
)
from memory_core.recall.keys import Key, key_of
from memory_core.recall.line import Line, line
from memory_core.recall.neighbors import is_short, needs_neighbor
from memory_core.recall.pushing import worth_pushing
from memory_core.recall.trust import Trust
from memory_core.recall.values import Reason, RecallOptions
from memory_core.retrieval.diversity import diversified

PLACED_FIRST: Final = 3
"""This many of the best lines come before any other, by any author, and get their places before any neighbor."""

FEW: Final = 8
"""Lines of a block for a question to which nothing is known: what came closest, for a tool that asks. Tuned
(`docs/measured.md`)."""

Outcomes = dict[Key, tuple[Reason, str | None]]
"""For the key of a memory, whether it is shown or why not, and the id of the memory that says the same."""


@dataclass(slots=True)
class Choice:
    """The lines, best first, and what became of the other hits."""

    lines: list[Line] = field(default_factory=list[Line])
    outcomes: Outcomes = field(default_factory=Outcomes)
    """Of the hits without a line."""
    later: Outcomes = field(default_factory=Outcomes)
    """The reasons why lines come later than their score says; they also stand for lines for which there is no room."""
    doubtful: int = 0
    """Number of lines that ask about the same, copy the question as strangers, or are of a session with such copies."""


def choose(
    asked: InContext,
    found: Found,
    options: RecallOptions,
    *,
    longest: int,
    now: datetime,
    trust: Trust,
) -> Choice:
    """Choose the lines for a question.

    Args:
        longest: Most characters shown of one memory.
        now: Memories that were valid until an earlier time count as superseded.
        trust: The authors who may have more than a share of the lines.
    """
    question, choice = question_of(asked.question), Choice()
    fit = _fit(found, question, asked, options, now, choice)
    lines = [line(hit, question.terms, longest) for hit in fit]
    lines = _once(sorted(lines, key=lambda each: -each.worth), choice.outcomes)
    records = [each.record for each in lines]
    again = asking_again(records, question)
    telling = telling_more(records, question, asked.said) - again
    repeating: Outcomes = {each.key: ("copy", None) for each in lines if each.key not in telling}
    leading = [each for each in lines if each.key in telling]
    copies = set[Key]()
    shared = is_shared(records, trust.is_own)
    if shared:
        copies = near_copies([each for each in records if not trust.is_own(each)], question)
        leading = in_fair_order(leading, trust.is_own, PLACED_FIRST)[0]
        leading = _strangers_last(leading, copies, trust)
        lines = _without_what_copies_lend(lines, copies, choice)
        lines.sort(key=lambda each: -each.worth)
    best = {each.key: each for each in leading[:PLACED_FIRST]}
    lines = _questions_last(lines, again, choice, options, best)
    if shared:
        lines, gave_way = in_fair_order(lines, trust.is_known)
        choice.later |= dict.fromkeys(gave_way, ("author", None))
    choice.lines = _led_by(best, lines)
    lower = {key: reason for key, reason in (repeating | choice.later).items() if key not in best}
    choice.later = lower | _given_way(list(best.values()), copies)
    if options.floor and not is_answered(found):
        choice.outcomes |= {each.key: ("floor", None) for each in choice.lines[FEW:]}
        del choice.lines[FEW:]
    return choice


def _fit(
    found: Found, question: Question, asked: InContext, options: RecallOptions, now: datetime, choice: Choice
) -> list[Hit]:
    """The hits that may stand in the block, and that are worth it if it is pushed."""
    fit: list[Hit] = []
    records = [hit.record for hit in found.hits]
    asked_before = the_same(records, question, shows_query=asked.prompt.shows_query)
    for hit in found.hits:
        key = key_of(hit.record)
        reason = "question" if key in asked_before else unfit(hit.record, asked, options, now)
        if reason is None:
            fit.append(hit)
        else:
            choice.outcomes[key] = reason, None
    if options.pushed:
        useless = worth_pushing(question, fit, found.surplus)
        choice.outcomes |= {key: (reason, None) for key, reason in useless.items()}
        fit = [hit for hit in fit if key_of(hit.record) not in useless]
    return fit


def unfit(record: MemoryRecord, asked: InContext, options: RecallOptions, now: datetime) -> Reason | None:
    """The reason why a record may not stand in a block, whatever brought it there: the search, a link, or a turn beside
    a hit; `None` if it may.

    Args:
        now: Memories that were valid until an earlier time count as superseded, unless the past is asked for.
    """
    if not record.text.strip():
        return "no text"
    shows_the_past = options.where.as_of is not None or "archived" in options.where.states
    if not shows_the_past and record.valid_to is not None and record.valid_to <= now:
        return "superseded"
    return "excluded" if record.text in asked.said or asked.prompt.shows(record) else None


def is_answered(found: Found) -> bool:
    """True if a hit says more about the question than chance and small talk do; one that was not compared may."""
    return any(found.surplus.get(key_of(hit.record), 1.0) > 0 for hit in found.hits)


def _strangers_last(best: Sequence[Line], copies: Collection[Key], trust: Trust) -> list[Line]:
    """The best lines in another order: first those of whom the owner knows that are comparable, and copies of the
    question last."""
    least = COMPARABLE * max((each.worth for each in best), default=0.0)

    def order(each: Line) -> tuple[bool, bool]:
        return each.key in copies, not trust.is_known(each.record) or each.worth < least

    return sorted(best, key=order)


def _given_way(best: Sequence[Line], copies: Collection[Key]) -> Outcomes:
    """The reasons why lines that are better than the first one do not come before it."""
    return {each.key: ("copy" if each.key in copies else "author", None) for each in best if each.worth > best[0].worth}


def _led_by(best: Mapping[Key, Line], lines: Sequence[Line]) -> list[Line]:
    """The lines in their order, after those of the best that are among them."""
    present = {each.key for each in lines}
    return [*(best[key] for key in best if key in present), *(each for each in lines if each.key not in best)]


def _questions_last(
    lines: Sequence[Line], again: set[Key], choice: Choice, options: RecallOptions, best: Mapping[Key, Line]
) -> list[Line]:
    """The lines that are good enough: what may answer the question, and then earlier questions like it.

    Args:
        again: The lines that are such questions.
        best: Judged by their score, whatever they are worth among the lines of others.
    """
    least = options.min_score * max((each.worth for each in lines if each.key not in again), default=0.0)
    again = again - {each.key for each in lines[:1]}
    choice.later = dict.fromkeys(again, ("question", None)) | choice.later
    choice.doubtful += len(again)
    worse = {each.key for each in lines if options.min_score and best.get(each.key, each).worth < least}
    choice.outcomes |= dict.fromkeys(worse, ("score", None))
    enough = [each for each in lines if each.key not in worse]
    return [
        *_varied([each for each in enough if each.key not in again], options.diversity),
        *_varied([each for each in enough if each.key in again], options.diversity),
    ]


def _varied(lines: Sequence[Line], diversity: float) -> list[Line]:
    """The lines, best first, each as different from those before it as the options ask for."""
    if not diversity:
        return list(lines)
    by_key = {each.key: each for each in lines}
    weighed = [replace(each.hit, score=each.worth) for each in lines]
    return [by_key[key_of(hit.record)] for hit in diversified(weighed, len(weighed), diversity)]


def _without_what_copies_lend(lines: Sequence[Line], copies: Collection[Key], choice: Choice) -> list[Line]:
    """The lines; copies of the question by others are worth nothing, nor is what they lend to their sessions."""
    choice.later |= dict.fromkeys(copies, ("copy", None))
    sessions = {each.record.session for each in lines if each.key in copies} - {None}
    choice.doubtful = sum(each.key in copies or each.record.session in sessions for each in lines)
    return [
        replace(each, worth=0.0)
        if each.key in copies
        else replace(each, worth=min(each.worth, _own_worth(each)))
        if each.record.session in sessions
        else each
        for each in lines
    ]


def _own_worth(each: Line) -> float:
    """The evidence of a line by itself, without what the turns around it lend."""
    return each.worth if each.hit.relevance is None else each.hit.relevance.strength


def linked(lines: Sequence[Line], records: Mapping[Key, Sequence[MemoryRecord]], longest: int) -> list[Line]:
    """The lines, with the records that each links to after it, or after the best lines if it is one of these.

    Records that are present or repeat another line are left out.

    Args:
        records: The records that a record links to, by its key.
        longest: Most characters shown of one memory.
    """
    order = list(lines[:PLACED_FIRST])
    present, forms = {each.key for each in lines}, {each.form for each in lines}
    for place, each in enumerate(lines):
        if place >= PLACED_FIRST:
            order.append(each)
        for record in records.get(each.key, ()):
            if key_of(record) in present:
                continue
            hit = replace(each.hit, record=record, passage=None, components=None, relevance=None)
            added = replace(line(hit, frozenset(), longest), worth=each.worth)
            if added.form not in forms:
                order.append(added)
    return order


def _once(lines: Sequence[Line], outcomes: Outcomes) -> list[Line]:
    """Each text once for each speaker, at the place of the best and with the date of the latest."""
    kept: list[Line] = []
    places: dict[str, list[int]] = {}
    times = Counter(each.form for each in lines)
    for each in lines:
        if times[each.form] == 1 or (is_short(each.text) and needs_neighbor(each.record)):
            kept.append(each)  # a short reply says something else to another question
            continue
        same = places.setdefault(each.form, [])
        place = next((n for n in same if is_one_statement(each.record, kept[n].record)), None)
        if place is None:
            same.append(len(kept))
            kept.append(each)
        else:
            kept[place] = _later(kept[place], each, outcomes)
    return kept


def is_one_statement(one: MemoryRecord, other: MemoryRecord) -> bool:
    """True if two records of the same words are one statement; two people who say the same make two."""
    return one.author == other.author or None in (one.author, other.author) or "assistant" in (one.role, other.role)


def _later(kept: Line, repetition: Line, outcomes: Outcomes) -> Line:
    """The one of two repetitions to keep: a person's rather than the model's, otherwise the later one."""
    newer = repetition.record.occurred_at > kept.record.occurred_at and repetition.record.role == kept.record.role
    if not newer and (kept.record.role != "assistant" or repetition.record.role == "assistant"):
        outcomes[repetition.key] = "duplicate", kept.record.id
        return kept
    outcomes[kept.key] = "duplicate", repetition.record.id
    hit = replace(repetition.hit, score=kept.hit.score, similarity=kept.hit.similarity)
    return replace(repetition, hit=hit, worth=kept.worth)
