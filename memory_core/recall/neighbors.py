"""The turns that a short turn needs to be understood: the question before a reply, and the answer after a question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.protocols import Searching
from memory_core.recall.line import Line
from memory_core.retrieval.analysis import asks, words
from memory_core.retrieval.equal_texts import equal_form
from memory_core.values.times import shifted
from memory_core.where.conditions import AllOf, AnyOf, FieldCondition
from memory_core.where.where import Where

REPLY_WORDS: Final = 8
"""Maximum length of a text that may need the question before it to be understood: "Yes, on Friday!"."""
QUESTION_WORDS: Final = 20
"""Maximum length of a text that is shown with the answer to its question. Longer ones tell something themselves."""
_SHORT_CHARS: Final = 200
"""So many words are hardly ever longer; longer texts are not analysed."""
MERE_REPLY_WORDS: Final = 3
"""Maximum words of a reply that says nothing by itself."""
WITHIN: Final = timedelta(hours=1)
"""A turn at a greater distance is not read, so that a recall reads little of a session that lasts for years."""
_MOST_TURNS: Final = 1_000
"""Maximum number of turns read."""


async def with_neighbors(handle: Searching, lines: Sequence[Line], where: Where, most: int) -> list[Line]:
    """The lines, with the question before short replies and the answer after questions. One read, or none.

    Args:
        most: Neighbors are read for this many of the first lines.
    """
    turns = [line.record for line in lines[:most] if needs_neighbor(line.record)]
    if not turns:
        return list(lines)
    around = [_around(record) for record in turns]
    page = await handle.list(
        where=replace(where, matching=(*where.matching, AnyOf(around))), order="oldest", limit=_MOST_TURNS
    )
    sessions: defaultdict[str | None, list[MemoryRecord]] = defaultdict(list)
    for record in page.records:
        if record.text.strip():
            sessions[record.session].append(record)
    wanted = {record.id for record in turns}
    return [_beside(line, sessions) if line.record.id in wanted else line for line in lines]


def needs_neighbor(record: MemoryRecord) -> bool:
    """Whether a turn may need the one before it to be understood or, if it asks, the one after it."""
    if record.session is None or (record.role is None and record.kind != "message"):
        return False
    return is_question(record) or is_short(record.text, REPLY_WORDS)


def is_question(record: MemoryRecord) -> bool:
    """Whether a person's short turn ends in a question mark, of whatever script. What a model asks back is a reply."""
    text = record.text
    return record.role != "assistant" and is_short(text, QUESTION_WORDS) and _ends_asking(text)


def _ends_asking(text: str) -> bool:
    """Whether a text ends with a question, or nearly so."""
    end = text[-_SHORT_CHARS:]
    return asks(end) and any(map(str.isalnum, end))


def is_short(text: str, most: int = MERE_REPLY_WORDS) -> bool:
    """Whether a text has at most so many words."""
    return len(text) <= _SHORT_CHARS and words(text) <= most


def _around(record: MemoryRecord) -> AllOf:
    at = record.occurred_at
    return AllOf(
        (
            FieldCondition("session", "eq", record.session),
            FieldCondition("occurred_at", "between", (shifted(at, -WITHIN), shifted(at, WITHIN))),
        )
    )


def _beside(line: Line, sessions: Mapping[str | None, Sequence[MemoryRecord]]) -> Line:
    record = line.record
    turns = [turn for turn in sessions[record.session] if turn.kind == record.kind]
    place = next((n for n, turn in enumerate(turns) if turn.id == record.id), None)
    if place is None:
        return line
    if is_question(record):
        after = turns[place + 1] if place + 1 < len(turns) else None
        is_answer = after is not None and _is_others(record, after) and not is_question(after)
        return replace(line, after=after) if is_answer else line
    before = turns[place - 1] if place else None
    is_asked = before is not None and _is_others(record, before) and _ends_asking(before.text)
    return replace(line, before=before) if is_asked else line


def _is_others(one: MemoryRecord, other: MemoryRecord) -> bool:
    """Whether somebody else says something else."""
    return (one.role, one.author) != (other.role, other.author) and equal_form(one.text) != equal_form(other.text)
