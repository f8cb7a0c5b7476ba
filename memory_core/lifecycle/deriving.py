"""Plan the records that are derived from others: facts from conversations, summaries, patterns in many memories."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Final

from memory_core.errors import InvalidInputError, UnreadableAnswerError, reason_for_log
from memory_core.handle import BoundMemory
from memory_core.lifecycle.derived_records import (
    CONFIDENCE,
    INSIGHT,
    SUMMARY,
    changed,
    derived_id,
    identity,
    linked_to,
    noted,
    read_by,
    reading,
)
from memory_core.lifecycle.fading import is_pinned, last_used
from memory_core.lifecycle.manager import Manager
from memory_core.lifecycle.managing import managed
from memory_core.lifecycle.proposals import Insight, Reflector
from memory_core.lifecycle.summaries import ExtractiveSummarizer
from memory_core.lifecycle.values import DAY, REFLECTION, Change, Period, Step, Usage
from memory_core.local_time import local_day
from memory_core.models import Draft, MemoryRecord, Patch
from memory_core.profile import PINNED
from memory_core.recall.quoting import named
from memory_core.records.undone import NOTHING, UNDONE, Undone, undone_by
from memory_core.retrieval.equal_statements import is_turn
from memory_core.retrieval.hits import EXTRACTION
from memory_core.supplied import Summarizer
from memory_core.values.checks import check_helper, check_summarizer, check_text
from memory_core.values.limits import MAX_LINKS, MAX_TEXT_CHARS
from memory_core.values.times import day_of

logger = logging.getLogger(__name__)

READ_AT_ONCE: Final = 100
"""Turns of a session that a summary covers at once."""
LEAST_SUMMARIZED: Final = 10
"""Fewest turns that are summarised."""
MOST_SUMMARIZED: Final = MAX_LINKS - 1
"""Most summaries of sessions that one of a period covers: its note has a link to each, and one to it."""
QUIET_DAYS: Final = 1
"""A session without a turn for so many days is over, and its rest is summarised."""
LEAST_NEW: Final = 20
"""New memories after which a reflector is called again."""
KNOWN_KINDS: Final = (EXTRACTION, REFLECTION, SUMMARY, INSIGHT, UNDONE)
"""Kinds that say what was derived or taken back before."""
IMPORTANT: Final = 0.8
"""Turns of this importance are not compacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """The helpers that derive records; one that is `None` derives nothing."""

    manager: Manager | None = None
    summarizer: Summarizer | None = None
    reflector: Reflector | None = None
    spent: list[Usage] = field(default_factory=list[Usage])
    """Gets the costs of each call of the manager."""

    def __post_init__(self) -> None:
        check_summarizer(self.summarizer)
        check_helper("reflector", self.reflector, "reflect", "`PatternReflector()` or `LanguageModel(ask)`")


def is_note(record: MemoryRecord) -> bool:
    """True if a record only notes what was read, so that it is read once, or what was taken back."""
    return record.kind in {EXTRACTION, REFLECTION, UNDONE} and not record.text


async def derived(
    handle: BoundMemory,
    records: Sequence[MemoryRecord],
    known: Sequence[MemoryRecord],
    helpers: Helpers,
    now: datetime,
) -> AsyncIterator[Step]:
    """The steps that add derived records, in order, each as soon as a helper has answered.

    Args:
        handle: Of the owner.
        records: The records of an owner to derive from, in all states.
        known: All records of the owner of `KNOWN_KINDS`, in all states.
    """
    oldest_first = sorted(records, key=lambda record: (record.occurred_at, record.id))
    before = list({record.id: record for record in (*known, *oldest_first)}.values())
    for step in _unfinished(oldest_first):
        yield step
    if helpers.manager is not None:
        async for step in managed(handle, oldest_first, before, helpers.manager, helpers.spent):
            yield step
    if helpers.summarizer is not None:
        async for step in _summaries(oldest_first, before, helpers.summarizer, now):
            yield step
    if helpers.reflector is not None:
        async for step in _reflections(oldest_first, before, helpers.reflector):
            yield step


def _unfinished(records: Iterable[MemoryRecord]) -> Iterator[Step]:
    """Archive the notes of runs that were interrupted before they did so."""
    for record in records:
        if is_note(record) and record.state == "active":
            change = changed(record.id, record.version, "archived")
            yield Step(reason="extracted", kept="", gone=(), changes=(change,))


async def _summaries(
    records: Sequence[MemoryRecord], known: Sequence[MemoryRecord], summarizer: Summarizer, now: datetime
) -> AsyncIterator[Step]:
    """A step for each part of a session that no summary covers: full batches, and the rest of one that is over."""
    covered = {link.id for each in known if each.kind == SUMMARY for link in each.links}
    read = read_by(known, _summary_of(None))  # also for summaries that a person has deleted or taken back
    unsummarized = (each for each in records if each.text.strip() and not (each.id in covered or reading(each) in read))
    for turns in _batches(unsummarized):
        is_over = (now - turns[-1].occurred_at) / DAY >= QUIET_DAYS and len(turns) >= LEAST_SUMMARIZED
        if len(turns) == READ_AT_ONCE or is_over:
            yield await _summary(turns, summarizer)


async def of_periods(
    records: Iterable[MemoryRecord],
    periods: Sequence[Period],
    summarizer: Summarizer,
    now: datetime,
    known: Iterable[MemoryRecord] = (),
) -> AsyncIterator[Step]:
    """A step for each period whose sessions have ended: a summary of their summaries, of which there are at least two.

    Args:
        records: With the summaries of sessions, also new ones.
        known: As for `derived`.
    """
    summaries = [each for each in records if each.kind == SUMMARY]
    before = [*known, *summaries]
    for period in periods:
        covers = [each for each in before if each.kind == SUMMARY and each.data.get("period") == period]
        covered = {link.id for each in covers for link in each.links}
        read = read_by(before, _summary_of(period))
        groups: dict[date, list[MemoryRecord]] = defaultdict(list)
        for each in sorted(summaries, key=lambda record: (record.occurred_at, record.id)):
            is_covered = each.id in covered or reading(each) in read
            if not is_covered and "period" not in each.data:
                groups[first_day(local_day(each), period)].append(each)
        for first, sources in groups.items():
            is_over = first < first_day(day_of(now - 2 * QUIET_DAYS * DAY), period)
            if is_over and len(sources) > 1:
                for start in range(0, len(sources), MOST_SUMMARIZED):
                    yield await _summary(sources[start : start + MOST_SUMMARIZED], summarizer, period)


def first_day(day: date, period: Period) -> date:
    """The day with which the period of a day begins."""
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day


async def _summary(turns: Sequence[MemoryRecord], summarizer: Summarizer, period: Period | None = None) -> Step:
    """The step that adds the summary of some turns, or of the summaries of a period."""
    texts = [f"{named(who)}: {turn.text}" if (who := turn.author or turn.role) else turn.text for turn in turns]
    by, text = type(summarizer).__name__, ""
    try:
        text = check_text("a summary", await summarizer.summarize(texts)).strip()
    except Exception as error:  # noqa: BLE001  (whatever a model's client raises: there is a summary without it)
        logger.warning("a session is summarised without its summarizer: %s", reason_for_log(error))
    if not text:
        by, text = ExtractiveSummarizer.__name__, await ExtractiveSummarizer().summarize(texts)
    first, last = turns[0], turns[-1]
    readings = [*([period] if period else []), *chain.from_iterable(map(reading, turns))]
    span = {"from": str(first.data.get("from", first.occurred_at.isoformat())), "until": last.occurred_at.isoformat()}
    draft = Draft(
        text[:MAX_TEXT_CHARS],
        kind=SUMMARY,
        tags=(PINNED,) if any(map(is_pinned, turns)) else (),
        importance=max(turn.importance for turn in turns),
        occurred_at=last.occurred_at,
        data={"by": by, **span, **({"period": period} if period else {})},
        links=linked_to("summarizes", turns),
        **identity(SUMMARY, *readings),
        agent=_shared(turn.agent for turn in turns),
        session=None if period else first.session,
        collection=_shared(turn.collection for turn in turns),
    )
    note = derived_id(EXTRACTION, _summary_of(period), *readings)
    return noted(EXTRACTION, note, _summary_of(period), "summary", [draft], turns, made=[str(draft.id)])


def _summary_of(period: Period | None) -> str:
    """Under what the turns of a session, or the summaries of a period, are noted as read by any summarizer."""
    return f"summary of a {period or 'session'}"


def compacted(records: Iterable[MemoryRecord], days: float, now: datetime, undone: Undone = NOTHING) -> Iterator[Step]:
    """A step for each summary that replaces old turns which nobody reads: they become `compacted`.

    Args:
        records: Active records.
        days: Age from which on turns are compacted.
        undone: A turn that was brought back is not compacted again.
    """
    by_id = {record.id: record for record in records}
    for summary in [record for record in by_id.values() if record.kind == SUMMARY]:
        turns = [by_id[link.id] for link in summary.links if link.relation == "summarizes" and link.id in by_id]
        old = [turn for turn in turns if _is_old(turn, days, now) and not undone.has("summary", turn.id)]
        if old:
            changes = tuple(changed(turn.id, turn.version, "compacted") for turn in old)
            yield Step(reason="summary", kept=summary.text, gone=tuple(turn.text for turn in old), changes=changes)


def _is_old(turn: MemoryRecord, days: float, now: datetime) -> bool:
    unread = (now - last_used(turn)) / DAY > days
    return is_turn(turn) and unread and turn.importance < IMPORTANT and not is_pinned(turn)


async def _reflections(
    records: Sequence[MemoryRecord], before: Sequence[MemoryRecord], reflector: Reflector
) -> AsyncIterator[Step]:
    """One step with the patterns that a reflector finds once there are enough new memories; patterns that it found
    before get the new text."""
    notes = [each for each in before if each.kind == REFLECTION and each.data.get("by") == reflector.name]
    sources = [each for each in records if not _is_derived(each) and each.text.strip()]
    if len(sources) < LEAST_NEW + max((int(str(note.data.get("read", 0))) for note in notes), default=0):
        return
    try:
        insights = await reflector.reflect(sources)
    except UnreadableAnswerError as error:
        logger.warning(
            "%d memories show no pattern yet, and the next run asks again: %s", len(sources), reason_for_log(error)
        )
        return
    known, undone = {record.source_key: record for record in before}, undone_by(before)
    drafts: list[Draft] = []
    changes: list[Change] = []
    for insight in insights:
        if len(insight.sources) > MAX_LINKS:
            logger.warning("an insight is left out: it is made of %d memories", len(insight.sources))
            continue
        draft = _insight(insight, [_among(sources, place, reflector.name) for place in insight.sources], reflector.name)
        old = known.get(draft.source_key)
        if old is None and not undone.has("insight", str(draft.id)):
            drafts.append(draft)
        elif old is not None and old.text != draft.text:
            patch, undo = Patch(text=draft.text, links=draft.links), Patch(text=old.text, links=old.links)
            changes.append(Change(id=old.id, version=old.version, patch=patch, undo=undo))
    note = derived_id(REFLECTION, reflector.name, sources[-1].id)
    read = {"read": len(sources)}
    step = noted(REFLECTION, note, reflector.name, "reflection", drafts, (), data=read)
    yield replace(step, changes=(*changes, *step.changes))


def _insight(insight: Insight, sources: Sequence[MemoryRecord], by: str) -> Draft:
    return Draft(
        insight.text,
        kind=INSIGHT,
        confidence=CONFIDENCE,
        occurred_at=max((source.occurred_at for source in sources), default=None),
        data={"by": by},
        links=linked_to("derived_from", sources),
        **identity(INSIGHT, by, insight.about or insight.text),
    )


def _batches(records: Iterable[MemoryRecord]) -> Iterator[list[MemoryRecord]]:
    """Turns in batches, in order, each of one session."""
    sessions: dict[str | None, list[MemoryRecord]] = defaultdict(list)
    for record in records:
        if is_turn(record):
            sessions[record.session].append(record)
    for turns in sessions.values():
        yield from (turns[at : at + READ_AT_ONCE] for at in range(0, len(turns), READ_AT_ONCE))


def _among(records: Sequence[MemoryRecord], place: int, by: str) -> MemoryRecord:
    if not 0 <= place < len(records):
        raise InvalidInputError(f"{by!r} names memory {place} of {len(records)}; positions are counted from 0")
    return records[place]


def _is_derived(record: MemoryRecord) -> bool:
    return record.tier == "summary" or any(link.relation == "derived_from" for link in record.links)


def _shared(values: Iterable[str | None]) -> str | None:
    """The value that all have."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
