"""Select the hits of a search that get a line in a prompt, and order them: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from memory_core.models import Hit, MemoryRecord
from memory_core.recall.candidates import Candidate
from memory_core.recall.levels import at_one_level
from memory_core.recall.statements import (
    asks_the_same,
    echoes,
    ends_asking,
    excerpt,
    is_mere_reply,
    is_request,
    is_short,
    is_the_same,
    terms_of,
)
from memory_core.recall.values import Reason, RecallOptions
from memory_core.retrieval.diversity import diversified
from memory_core.retrieval.equal_texts import equal_form

NEAR: Final = 0.5
"""Statements with at least this share of the best one's score or similarity count as equally relevant: of these the
latest comes first, because it may correct the others, in other words."""

BEST: Final = 3
"""This many of the best hits come before all others, even if they are questions: a question can tell a fact."""

MOST_ASKED: Final = 8
"""Number of earlier questions whose answers are read."""


@dataclass(slots=True)
class Selection:
    """The candidates for the lines of a block, best first, and the hits that were left out."""

    kept: list[Candidate] = field(default_factory=list[Candidate])
    left_out: dict[str, tuple[Reason, str | None]] = field(default_factory=dict[str, tuple[Reason, str | None]])
    """For each id left out, the reason and the id of the memory that says the same."""
    asked: list[Candidate] = field(default_factory=list[Candidate])
    """Earlier questions, best first, each text once, also those left out, because their answers are relevant."""

    @property
    def excluded(self) -> int:
        """Number of hits left out because the prompt already shows them."""
        return sum(reason == "excluded" for reason, _ in self.left_out.values())

    def leave_out(self, record: MemoryRecord, reason: Reason, of: str | None = None) -> None:
        self.left_out[record.id] = reason, of

    def note_question(self, candidate: Candidate) -> None:
        """Keep an earlier question, whether or not it gets a line."""
        is_turn = candidate.is_request and candidate.record.session is not None
        if is_turn and len(self.asked) < MOST_ASKED and all(each.words != candidate.words for each in self.asked):
            self.asked.append(candidate)

    def raise_answered(self, question: Candidate, answer: MemoryRecord, wanted: frozenset[str]) -> None:
        """Move the statement that an answer repeats up to the position of the question."""
        said, known = terms_of(answer.text), wanted | question.terms
        source = next((c for c in self.kept if not c.is_request and _is_repeated_in(answer, said, c, known)), None)
        if source is None or source.hit.score >= question.hit.score:
            return
        self.kept.remove(source)
        place = next((n for n, c in enumerate(self.kept) if c.is_request or c.hit.score < question.hit.score), None)
        self.kept.insert(len(self.kept) if place is None else place, _raised(source, question))

    def add_after(self, source: Candidate, record: MemoryRecord, longest: int) -> None:
        """Insert a linked record after its candidate, unless it is present or repeats another candidate."""
        place = next((n for n, each in enumerate(self.kept) if each.record.id == source.record.id), None)
        added = _candidate(replace(source.hit, record=record, passage=None, components=None), frozenset(), longest)
        known = any(each.record.id == record.id or _is_repeated(added, each) for each in self.kept)
        if place is not None and record.text.strip() and not known:
            self.kept.insert(place + 1, added)


def select(query: str, hits: Sequence[Hit], options: RecallOptions, *, longest: int, now: datetime) -> Selection:
    """Leave out hits without content or with nothing new, and move questions behind the statements.

    Args:
        hits: Best first.
        longest: Most characters shown of one memory.
        now: Memories that were valid until an earlier time count as superseded.
    """
    selection = Selection()
    wanted = terms_of(query)
    least = options.min_score * hits[0].score if hits and options.min_score else float("-inf")
    shows_the_past = options.where.as_of is not None or "archived" in options.where.states
    candidates: list[Candidate] = []
    for hit in hits:
        candidate = _candidate(hit, wanted, longest)
        selection.note_question(candidate)
        reason = _unfit(candidate, query, wanted, shows_query=options.shows_query)
        if hit.score < least:
            reason = "score"
        elif not shows_the_past and hit.record.valid_to is not None and hit.record.valid_to <= now:
            reason = "superseded"
        elif options.without(hit.record):
            reason = "excluded"
        if reason is None:
            candidates.append(candidate)
        else:
            selection.leave_out(hit.record, reason)
    once = _without_echoes(_once(at_one_level(candidates, wanted, selection.leave_out), selection), wanted, selection)
    if options.diversity:
        by_id = {candidate.record.id: candidate for candidate in once}
        chosen = diversified([candidate.hit for candidate in once], len(once), options.diversity)
        once = [by_id[hit.record.id] for hit in chosen]
    selection.kept = [*_questions_last(once[:BEST]), *_questions_last(once[BEST:])]
    return selection


def _questions_last(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [c for c in candidates if not c.is_request] + [c for c in candidates if c.is_request]


def needs_neighbor(candidate: Candidate) -> bool:
    """Whether a turn needs the turn before it to be understood or, if it asks, the turn after it."""
    record = candidate.record
    is_turn = record.session is not None and (record.role is not None or record.kind == "message")
    return is_turn and (candidate.is_request or is_short(record.text))


def with_neighbors(candidates: Sequence[Candidate], query: str, found: Mapping[str, MemoryRecord]) -> list[Candidate]:
    """Add the question before short replies and the answer after questions; every candidate stays.

    Args:
        found: For the id of each candidate, the turn before it or, if it asks, after it.
    """
    wanted = terms_of(query)
    return [_beside(candidate, found.get(candidate.record.id), wanted) for candidate in candidates]


def _beside(candidate: Candidate, other: MemoryRecord | None, wanted: frozenset[str]) -> Candidate:
    if other is None or not _belong_together(candidate, other, wanted):
        return candidate
    return replace(candidate, after=other) if candidate.is_request else replace(candidate, before=other)


def _belong_together(candidate: Candidate, other: MemoryRecord, wanted: frozenset[str]) -> bool:
    """Whether the turn before or after a candidate is the question or the answer that completes it."""
    if (candidate.record.role, candidate.record.author) == (other.role, other.author):
        return False
    if candidate.is_request:
        return not is_request(other.text)
    return ends_asking(other.text) and not _is_query(other, wanted)


def latest_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Order the lines: as given, but among statements about as relevant as the best the latest comes first.

    Answers of the model and summaries keep their positions, and questions with their answers come last.
    """
    lines = [line for line in candidates if not line.is_request]
    stated = [n for n, line in enumerate(lines) if line.record.role != "assistant" and line.record.tier != "summary"]
    score = max((lines[place].hit.score for place in stated), default=0.0)
    likeness = max((lines[place].hit.similarity or 0.0 for place in stated), default=0.0)
    near = [place for place in stated if _is_near(lines[place], score, likeness)]
    latest = sorted((lines[place] for place in near), key=_since, reverse=True)
    for place, line in zip(near, latest, strict=True):
        lines[place] = line
    return lines + [line for line in candidates if line.is_request]


def _is_near(line: Candidate, score: float, likeness: float) -> bool:
    if score <= 0 or line.hit.score >= NEAR * score:
        return True
    return likeness > 0 and (line.hit.similarity or 0.0) >= NEAR * likeness


def _since(line: Candidate) -> datetime:
    return line.record.valid_from or line.record.occurred_at


def _is_query(record: MemoryRecord, wanted: frozenset[str]) -> bool:
    """Whether a record asks what the query asks."""
    if record.role not in ("user", None) or (record.role is None and not is_request(record.text)):
        return False
    return asks_the_same(record.text, terms_of(record.text), wanted)


def _candidate(hit: Hit, wanted: frozenset[str], longest: int) -> Candidate:
    whole = hit.passage.text if hit.passage else hit.record.text
    text = excerpt(whole, wanted, longest)
    said = equal_form(text)
    return Candidate(hit, text, said, terms_of(text), is_request(hit.record.text) and hit.record.role != "assistant")


def _unfit(candidate: Candidate, query: str, wanted: frozenset[str], *, shows_query: bool) -> Reason | None:
    record = candidate.record
    if not record.text.strip():
        return "no text"
    is_shown = shows_query and record.role == "user" and is_the_same(record.text, query)
    return "question" if is_shown or _is_query(record, wanted) else None


def _once(candidates: Sequence[Candidate], selection: Selection) -> list[Candidate]:
    """Keep each text once for each speaker, at the position of the best and with the date of the latest."""
    kept: list[Candidate] = []
    by_words: dict[str, list[int]] = {}
    for candidate in candidates:
        if is_mere_reply(candidate.text) and needs_neighbor(candidate):  # to another question it says something else
            kept.append(candidate)
            continue
        places = by_words.setdefault(candidate.words, [])
        place = next((n for n in places if _is_repeated(candidate, kept[n])), None)
        if place is None:
            places.append(len(kept))
            kept.append(candidate)
        else:
            kept[place] = _later(kept[place], candidate, selection)
    return kept


def _is_repeated(candidate: Candidate, other: Candidate) -> bool:
    return candidate.words == other.words and is_one_statement(candidate.record, other.record)


def is_one_statement(one: MemoryRecord, other: MemoryRecord) -> bool:
    """Whether two records of the same words are one statement; two people who say the same make two."""
    return one.author == other.author or None in (one.author, other.author) or "assistant" in (one.role, other.role)


def _later(kept: Candidate, repetition: Candidate, selection: Selection) -> Candidate:
    """The one of two repetitions to keep: a person's rather than the model's, otherwise the later one."""
    newer = repetition.record.occurred_at > kept.record.occurred_at and repetition.record.role == kept.record.role
    if not newer and (kept.record.role != "assistant" or repetition.record.role == "assistant"):
        selection.leave_out(repetition.record, "duplicate", kept.record.id)
        return kept
    selection.leave_out(kept.record, "duplicate", repetition.record.id)
    hit = replace(repetition.hit, score=kept.hit.score, similarity=kept.hit.similarity)
    return replace(repetition, hit=hit)


def _without_echoes(candidates: Sequence[Candidate], wanted: frozenset[str], selection: Selection) -> list[Candidate]:
    """Leave out answers of the model that repeat a statement; the statement takes the better position of the two."""
    order = list(candidates)
    statements = [c for c in order if c.record.role != "assistant" and not c.is_request]
    for answer in [c for c in order if c.record.role == "assistant"]:
        source = next((c for c in statements if _is_source(c, answer, wanted)), None)
        if source is None:
            continue
        selection.leave_out(answer.record, "echo", source.record.id)
        place = order.index(answer)
        if place < order.index(source):
            order.remove(source)
            statements[statements.index(source)] = raised = _raised(source, answer)
            order[place] = raised
        else:
            order.pop(place)
    return order


def _is_source(statement: Candidate, answer: Candidate, wanted: frozenset[str]) -> bool:
    said_before = statement.record.occurred_at <= answer.record.occurred_at
    return said_before and echoes(answer.terms, statement.terms, wanted)


def _is_repeated_in(answer: MemoryRecord, said: frozenset[str], statement: Candidate, known: frozenset[str]) -> bool:
    """Whether an answer to an earlier question repeats a statement."""
    record = statement.record
    is_earlier = record.role != "assistant" and record.occurred_at <= answer.occurred_at
    return is_earlier and answer.role == "assistant" and echoes(said, statement.terms, known)


def _raised(source: Candidate, other: Candidate) -> Candidate:
    """The statement with the score of the answer that repeats it, or of the question to that answer."""
    return replace(source, hit=replace(source.hit, score=max(source.hit.score, other.hit.score)))
