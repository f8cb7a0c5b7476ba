"""The turns that a short turn needs to be understood: the question before a reply, and the answer after a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from memory_core.agent_memory import Searching
from memory_core.models import MemoryRecord
from memory_core.recall.keys import Key, key_of
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

_Session = tuple[str, str, str | None, str]
"""The app, the user, the session and the kind of a turn."""


async def with_neighbors(
    handle: Searching, lines: Sequence[Line], where: Where, most: int, may_show: Callable[[MemoryRecord], bool]
) -> list[Line]:
    """The lines, with the question before short replies and the answer after questions. One read, or none.

    Args:
        where: The conditions of the recall. Those on state and validity hold for every turn that is read. The others
            do not, because a turn that is not shown still stands between two others.
        most: Neighbors are read for this many of the first lines.
        may_show: True if a turn may stand beside a line.
    """
    turns = [line.record for line in lines[:most] if needs_neighbor(line.record)]
    if not turns:
        return list(lines)
    asking = {key_of(record): is_short_question(record) for record in turns}
    page = await handle.list(
        where=Where(as_of=where.as_of, states=where.states, left=where.left, matching=(AnyOf(_beside(turns, asking)),)),
        order="oldest",
        limit=_MOST_TURNS,
    )
    before, after = _in_turn(page.records)
    others = {key: (after if asks_itself else before).get(key) for key, asks_itself in asking.items()}
    return [
        line
        if (other := others.get(line.key)) is None
        else _completed(line, other, may_show, asks_itself=asking[line.key])
        for line in lines
    ]


def _in_turn(turns: Iterable[MemoryRecord]) -> tuple[dict[Key, MemoryRecord], dict[Key, MemoryRecord]]:
    """The turn before each turn of a session, and the one after it, by key.

    Args:
        turns: Oldest first; a turn without a text does not count.
    """
    last: dict[_Session, MemoryRecord] = {}
    before: dict[Key, MemoryRecord] = {}
    after: dict[Key, MemoryRecord] = {}
    for turn in turns:
        if turn.text.strip():
            session = turn.app, turn.user, turn.session, turn.kind
            if (earlier := last.get(session)) is not None:
                before[key_of(turn)], after[key_of(earlier)] = earlier, turn
            last[session] = turn
    return before, after


def conversations(lines: Sequence[Line], questions: Mapping[Key, Key]) -> list[tuple[Line, ...]]:
    """Put replies behind the questions that they answer, in one line, at the best place of its turns.

    Args:
        questions: For the key of a reply, that of its question.
    """
    by_key = {line.key: line for line in lines}
    for key, line in by_key.items():
        if line.before is not None and key_of(line.before) in by_key:  # it stands there as a line of its own
            by_key[key] = replace(line, before=None)
    together: dict[Key, dict[Key, Line]] = {}
    for line in lines:
        turns = [line.key]
        while (question := questions.get(turns[-1])) in by_key and question not in turns:
            turns.append(question)
        together.setdefault(turns[-1], {}).update((turn, by_key[turn]) for turn in reversed(turns))
    return [tuple(turns.values()) for turns in together.values()]


def needs_neighbor(record: MemoryRecord) -> bool:
    """True if a turn may need the one before it to be understood or, if it asks, the one after it."""
    if record.session is None or (record.role is None and record.kind != "message"):
        return False
    return is_short_question(record) or is_short(record.text, REPLY_WORDS)


def is_short_question(record: MemoryRecord) -> bool:
    """True if a person's short turn ends in a question mark, of whatever script. What a model asks back is a reply."""
    text = record.text
    return record.role != "assistant" and _ends_asking(text) and is_short(text, QUESTION_WORDS)


def _ends_asking(text: str) -> bool:
    """True if a text ends with a question, or nearly so."""
    end = text[-_SHORT_CHARS:]
    return asks(end) and any(map(str.isalnum, end))


def is_short(text: str, most: int = MERE_REPLY_WORDS) -> bool:
    """True if a text has at most so many words."""
    return len(text) <= _SHORT_CHARS and words(text) <= most


def _beside(turns: Sequence[MemoryRecord], asking: Mapping[Key, bool]) -> list[AllOf]:
    """The spans of time in which are the turns that some turns need: the next one if they ask, else the one before."""
    spans: dict[str | None, list[tuple[datetime, datetime]]] = {}
    for turn in sorted(turns, key=lambda turn: turn.occurred_at):
        at, others = turn.occurred_at, spans.setdefault(turn.session, [])
        first, last = (at, shifted(at, WITHIN)) if asking[key_of(turn)] else (shifted(at, -WITHIN), at)
        if others and first <= others[-1][1]:  # most turns of a session are near each other
            before = others.pop()
            first, last = min(before[0], first), max(before[1], last)
        others.append((first, last))
    return [
        AllOf((FieldCondition("session", "eq", session), FieldCondition("occurred_at", "between", span)))
        for session, some in spans.items()
        for span in some
    ]


def _completed(line: Line, other: MemoryRecord, may_show: Callable[[MemoryRecord], bool], *, asks_itself: bool) -> Line:
    """The line with the turn after it if it asks, else with the one before it, if that says what is missing."""
    if not _is_others(line.record, other) or not may_show(other):
        return line
    if asks_itself:
        return line if is_short_question(other) else replace(line, after=other)
    return replace(line, before=other) if _ends_asking(other.text) else line


def _is_others(one: MemoryRecord, other: MemoryRecord) -> bool:
    """True if somebody else says something else."""
    return (one.role, one.author) != (other.role, other.author) and equal_form(one.text) != equal_form(other.text)
