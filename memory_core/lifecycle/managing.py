"""Plan what a chat model's answers about conversations do to a memory: new facts, corrections, repetitions."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Final

from memory_core.handle import BoundMemory
from memory_core.lifecycle.answers import Answer, Said
from memory_core.lifecycle.derived_records import (
    CONFIDENCE,
    INSIGHT,
    SUMMARY,
    derived_id,
    identity,
    linked_to,
    noted,
    read_by,
    reading,
)
from memory_core.lifecycle.manager import Manager, ask
from memory_core.lifecycle.prompt import MAX_TURN_CHARS, question
from memory_core.lifecycle.values import CORRECTS, Change, Step, Usage
from memory_core.models import Draft, MemoryRecord, Patch
from memory_core.profile import PINNED_BY_MODEL, PINS, speaks_for
from memory_core.records.kinds import CONVERSATION_TURN, MESSAGE_KIND, STEP, USER_QUERY
from memory_core.records.undone import Undone, undone_by
from memory_core.retrieval.equal_statements import is_statement, is_turn, linked
from memory_core.retrieval.hits import EXTRACTION
from memory_core.values.query_text import cut_query
from memory_core.where.conditions import FieldCondition
from memory_core.where.where import Where

logger = logging.getLogger(__name__)

READ_AT_ONCE: Final = 100
"""Most turns that one call shows."""
MAX_PROMPT_CHARS: Final = 40_000
"""Characters of turns after which another call begins, about 10,000 tokens."""
SHOWN_BEFORE: Final = 6
"""Turns before the new ones of a conversation that a call shows as well."""
NEAREST: Final = 5
"""Known facts that are looked for about each turn."""
_SPEAKERS: Final = ("user", "assistant", None)
_NO_STATEMENT: Final = (MESSAGE_KIND, USER_QUERY, CONVERSATION_TURN, STEP, SUMMARY, INSIGHT)
"""Kinds that are not facts that somebody stated, so that no search for these has to leave them out."""


@dataclass(frozen=True, slots=True)
class Part:
    """Turns of one conversation that the model has not read, in order."""

    before: tuple[MemoryRecord, ...]
    """The last turns before them, which it has read."""
    turns: tuple[MemoryRecord, ...]


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Facts that a later one corrects, also if that is only proposed: a model is shown what holds."""

    undone: Undone
    ids: set[str] = field(default_factory=set[str])

    def note(self, new: str, old: object) -> None:
        if isinstance(old, str) and not self.undone.has("correction", old, new):
            self.ids.add(old)


async def managed(
    handle: BoundMemory,
    records: Sequence[MemoryRecord],
    known: Sequence[MemoryRecord],
    manager: Manager,
    spent: list[Usage],
) -> AsyncIterator[Step]:
    """A step for each answer of the model: what it adds, and a note of the turns that it has read.

    Args:
        handle: Facts that are known are looked for through it, also those that earlier steps added.
        records: The records whose conversations are read, oldest first, in all states.
        known: The notes of the owner.
        spent: Gets the costs of each call.
    """
    read = read_by(known, manager.name)
    stored = {record.id for record in records}
    replaced = _Replaced(undone_by(known))
    for record in records:
        if record.state == "active":
            replaced.note(record.id, record.data.get(CORRECTS))
    for part in unread(records, read):
        facts = await _nearest(handle, part.turns, manager.known, replaced.ids)
        messages = question(manager.prompt, facts, part.before, part.turns)
        answer = await ask(manager, messages, len(part.turns), len(facts), spent)
        if answer is None:
            logger.warning("%d turns stay unread, and the next run reads them", len(part.turns))
            continue
        if answer.refused:
            spent.append(Usage(refused_lines=answer.refused))
        drafts, changes = _found(handle.scope.user, manager.name, part.turns, facts, answer)
        new = [draft for draft in drafts if draft.id not in stored]
        note = derived_id(EXTRACTION, manager.name, *chain.from_iterable(map(reading, part.turns)))
        confirmed = [change.id for change in changes]
        step = noted(EXTRACTION, note, manager.name, "extracted", new, part.turns, changes=changes, made=confirmed)
        for draft in new:
            replaced.note(str(draft.id), draft.data.get(CORRECTS))
        yield step


def unread(records: Iterable[MemoryRecord], read: Collection[tuple[str, ...]]) -> Iterator[Part]:
    """The parts of conversations that have not been read, each small enough for one call.

    What only the model itself said waits until a person speaks. What was left is not shown.

    Args:
        records: Oldest first.
        read: The turns that have been read, as `reading` identifies them.
    """
    sessions: dict[str | None, list[MemoryRecord]] = defaultdict(list)
    for record in records:
        is_said = (is_turn(record) or record.kind == CONVERSATION_TURN) and record.role in _SPEAKERS
        if is_said and record.text.strip() and not record.left:
            sessions[record.session].append(record)
    for turns in sessions.values():
        before: list[MemoryRecord] = []
        part: list[MemoryRecord] = []
        size = 0
        for turn in turns:
            if reading(turn) in read:
                before.append(turn)
                continue
            shown = min(len(turn.text), MAX_TURN_CHARS)
            if part and (len(part) == READ_AT_ONCE or size + shown > MAX_PROMPT_CHARS):
                yield Part(tuple(before[-SHOWN_BEFORE:]), tuple(part))
                before, part, size = [*before, *part], [], 0
            part.append(turn)
            size += shown
        if any(turn.role != "assistant" for turn in part):
            yield Part(tuple(before[-SHOWN_BEFORE:]), tuple(part))


async def _nearest(
    handle: BoundMemory, turns: Sequence[MemoryRecord], most: int, replaced: set[str]
) -> list[MemoryRecord]:
    """The known facts nearest to what people say in some turns, at most so many."""
    if not most:
        return []
    where = Where(matching=[FieldCondition("kind", "nin", _NO_STATEMENT)])
    found: list[list[MemoryRecord]] = []
    for turn in turns:
        if turn.role != "assistant":
            query = cut_query(turn.text, MAX_TURN_CHARS)
            hits = await handle.search(query, limit=2 * NEAREST, where=where, floor=False, apart=True)
            facts = (hit.record for hit in hits if is_statement(hit.record) and hit.record.valid_to is None)
            found.append([fact for fact in facts if fact.id not in replaced][:NEAREST])
    by_rank = chain.from_iterable(zip_longest(*found))
    return list({fact.id: fact for fact in by_rank if fact is not None}.values())[:most]


def _found(
    owner: str | None, by: str, turns: Sequence[MemoryRecord], facts: Sequence[MemoryRecord], answer: Answer
) -> tuple[list[Draft], tuple[Change, ...]]:
    """The new facts of an answer, and the changes of known facts that turns repeat."""
    drafts: dict[str, Draft] = {}
    sources: dict[str, list[MemoryRecord]] = defaultdict(list)
    for said in answer.said:
        turn = turns[said.turn]
        old = None if said.fact is None else facts[said.fact]
        if said.verb == "same" and old is not None:
            sources[old.id].append(turn)
            continue
        draft = _fact(by, turn, said)
        if old is not None:
            draft = _correcting(draft, old)
        elif said.verb == "pin" and speaks_for(turn, owner):
            draft = replace(draft, tags=(PINNED_BY_MODEL,))
        drafts[str(draft.id)] = draft
    same = (
        Change(id=fact.id, version=fact.version, patch=Patch(links=links), undo=Patch(links=fact.links))
        for fact in facts
        if fact.id in sources and (links := linked(fact, "confirmed_by", sources[fact.id])) != fact.links
    )
    return list(drafts.values()), tuple(same)


def _fact(by: str, turn: MemoryRecord, said: Said) -> Draft:
    return Draft(
        said.text,
        role=turn.role,
        kind=said.kind,
        author=turn.author,
        confidence=CONFIDENCE,
        occurred_at=turn.occurred_at,
        expires_at=turn.expires_at,
        data={"by": by},
        links=linked_to("derived_from", [turn]),
        **identity(EXTRACTION, by, *reading(turn), said.text),
        agent=turn.agent,
        collection=turn.collection,
    )


def _correcting(new: Draft, old: MemoryRecord) -> Draft:
    """The new fact as one that takes the place of the old one. That it corrects it is part of its data, so that no
    answer has to be paid for again to propose or to do it."""
    tags = old.tags if is_same_speaker(new, old) else tuple(tag for tag in old.tags if tag not in PINS)
    return replace(new, kind=old.kind, tags=tags, importance=old.importance, data={**new.data, CORRECTS: old.id})


def is_same_speaker(one: Draft | MemoryRecord, other: MemoryRecord) -> bool:
    """True if two facts were drawn from what one speaker said: only such a fact may replace the other."""
    return (one.author, one.role) == (other.author, other.role)
