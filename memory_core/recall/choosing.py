"""Choose the hits of a search that may get a line in a block, and the order in which they do: pure functions.

A hit is left out only if the question and another line say all of it. What is merely less useful comes later, and gets
its line if there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_core.models import Hit, MemoryRecord
from memory_core.recall.asking import Found, InContext
from memory_core.recall.authors import in_fair_order, is_shared
from memory_core.recall.copies import Question, asks_again, asks_nothing_else, is_copy, is_the_same, question
from memory_core.recall.line import Line, line
from memory_core.recall.neighbors import is_short, needs_neighbor
from memory_core.recall.pushing import worth_pushing
from memory_core.recall.values import Reason, RecallOptions
from memory_core.retrieval.diversity import diversified

Outcomes = dict[str, tuple[Reason, str | None]]
"""For the id of a memory, whether it is shown or why not, and the id of the memory that says the same."""


@dataclass(slots=True)
class Choice:
    """The lines, best first, and what became of the other hits."""

    lines: list[Line] = field(default_factory=list[Line])
    outcomes: Outcomes = field(default_factory=Outcomes)
    """Of the hits without a line."""
    later: Outcomes = field(default_factory=Outcomes)
    """Why lines come later than their score says: the reason if there is no room for them."""
    doubtful: int = 0
    """How many lines ask about the same, are copies of the question by strangers, or stand in a session with them."""


def choose(
    asked: InContext,
    found: Found,
    options: RecallOptions,
    *,
    longest: int,
    now: datetime,
    is_trusted: Callable[[MemoryRecord], bool],
) -> Choice:
    """Choose the lines for a question.

    Args:
        longest: Most characters shown of one memory.
        now: Memories that were valid until an earlier time count as superseded.
        is_trusted: Whether the author of a record may have more than a share of the lines.
    """
    hits, asks = found.hits, question(asked.question)
    choice = Choice()
    unfit: dict[str, Reason | None] = {hit.record.id: _unfit(hit, asks, options, asked.said, now) for hit in hits}
    if options.pushed:
        fit = [hit for hit in hits if unfit[hit.record.id] is None]
        unfit |= worth_pushing(asks, fit, found.surplus)
    for key, reason in unfit.items():
        if reason is not None:
            choice.outcomes[key] = reason, None
    lines = [line(hit, asks.terms, longest) for hit in hits if unfit[hit.record.id] is None]
    if is_shared(lines, is_trusted):
        lines = _without_what_copies_lend(lines, asks, is_trusted, choice)
    lines = _once(sorted(lines, key=lambda each: -each.worth), choice.outcomes)
    lines = _questions_last(lines, asks, choice, options.min_score)
    if options.diversity:
        by_id = {each.record.id: each for each in lines}
        varied = diversified([each.hit for each in lines], len(lines), options.diversity)
        lines = [by_id[hit.record.id] for hit in varied]
    if is_shared(lines, is_trusted):
        lines, gave_way = in_fair_order(lines, is_trusted)
        choice.later |= dict.fromkeys(gave_way, ("author", None))
    choice.lines = lines
    return choice


def _questions_last(lines: Sequence[Line], asked: Question, choice: Choice, least: float) -> list[Line]:
    """The lines that are good enough: the best one, what may answer the question, and then earlier questions like it.

    Args:
        least: The share of the worth of the best line that may answer which a line needs.
    """
    again = {each.record.id for each in lines[1:] if asks_again(each.record, asked)}
    answers = [each for each in lines if each.record.id not in again]
    choice.later = dict.fromkeys(again, ("question", None)) | choice.later
    choice.doubtful += len(again)
    kept = _good_enough(answers, least, choice.outcomes)
    return kept + _good_enough([each for each in lines if each.record.id in again], least, choice.outcomes)


def _without_what_copies_lend(
    lines: Sequence[Line], asked: Question, is_trusted: Callable[[MemoryRecord], bool], choice: Choice
) -> list[Line]:
    """The lines; copies of the question by strangers are worth nothing, nor is what they lend to their sessions."""
    copies = {
        each.record.id: each.record.session
        for each in lines
        if not is_trusted(each.record) and is_copy(each.record.text, asked)
    }
    choice.later |= dict.fromkeys(copies, ("copy", None))
    sessions = set(copies.values()) - {None}
    choice.doubtful = sum(each.record.id in copies or each.record.session in sessions for each in lines)
    return [
        replace(each, worth=0.0)
        if each.record.id in copies
        else replace(each, worth=min(each.worth, _own_worth(each)))
        if each.record.session in sessions
        else each
        for each in lines
    ]


def _own_worth(each: Line) -> float:
    """The evidence of a line by itself, without what the turns around it lend."""
    return each.worth if each.hit.relevance is None else each.hit.relevance.strength


def _good_enough(lines: Sequence[Line], share: float, outcomes: Outcomes) -> list[Line]:
    """The lines with at least a share of the best one's worth."""
    if not lines or not share:
        return list(lines)
    kept = [each for each in lines if each.worth >= share * lines[0].worth]
    outcomes |= {each.record.id: ("score", None) for each in lines[len(kept) :]}
    return kept


def linked(lines: Sequence[Line], records: Mapping[str, Sequence[MemoryRecord]], longest: int) -> list[Line]:
    """The lines, each followed by the records that it links to, unless they are present or repeat another line.

    Args:
        records: Those that a record links to, by its id.
        longest: Most characters shown of one memory.
    """
    order: list[Line] = []
    present, forms = {each.record.id for each in lines}, {each.form for each in lines}
    for each in lines:
        order.append(each)
        for record in records.get(each.record.id, ()):
            if record.id in present or not record.text.strip():
                continue
            hit = replace(each.hit, record=record, passage=None, components=None, relevance=None)
            added = replace(line(hit, frozenset(), longest), worth=each.worth)
            if added.form not in forms:
                order.append(added)
    return order


def _unfit(hit: Hit, asked: Question, options: RecallOptions, said: Collection[str], now: datetime) -> Reason | None:
    record = hit.record
    if not record.text.strip():
        return "no text"
    if (options.shows_query and is_the_same(record, asked)) or asks_nothing_else(record, asked):
        return "question"
    shows_the_past = options.where.as_of is not None or "archived" in options.where.states
    if not shows_the_past and record.valid_to is not None and record.valid_to <= now:
        return "superseded"
    return "excluded" if record.text in said or options.without(record) else None


def _once(lines: Sequence[Line], outcomes: Outcomes) -> list[Line]:
    """Each text once for each speaker, at the place of the best and with the date of the latest."""
    kept: list[Line] = []
    places: dict[str, list[int]] = {}
    for each in lines:
        if is_short(each.text) and needs_neighbor(each.record):  # to another question it says something else
            kept.append(each)
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
    """Whether two records of the same words are one statement; two people who say the same make two."""
    return one.author == other.author or None in (one.author, other.author) or "assistant" in (one.role, other.role)


def _later(kept: Line, repetition: Line, outcomes: Outcomes) -> Line:
    """The one of two repetitions to keep: a person's rather than the model's, otherwise the later one."""
    newer = repetition.record.occurred_at > kept.record.occurred_at and repetition.record.role == kept.record.role
    if not newer and (kept.record.role != "assistant" or repetition.record.role == "assistant"):
        outcomes[repetition.record.id] = "duplicate", kept.record.id
        return kept
    outcomes[kept.record.id] = "duplicate", repetition.record.id
    hit = replace(repetition.hit, score=kept.hit.score, similarity=kept.hit.similarity)
    return replace(repetition, hit=hit, worth=kept.worth)
