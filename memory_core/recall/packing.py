"""Pack candidates into the budget of a block, best first: pure functions.

The best hits get their lines first. Then the neighbors of each line are added if they fit, and the other candidates
follow. What one step puts into the block, no later step takes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import le
from typing import Final

from memory_core.local_time import local_day
from memory_core.models import MemoryRecord
from memory_core.recall.block import block_of, line_of, longest_text, whole_neighbors
from memory_core.recall.choosing import PLACED_FIRST, Outcomes, is_one_statement
from memory_core.recall.keys import Key, key_of
from memory_core.recall.line import Line
from memory_core.recall.neighbors import conversations, is_short
from memory_core.recall.values import CHARS_PER_TOKEN, Reason, RecallOptions
from memory_core.retrieval.equal_texts import equal_form

_SHORTEST_LINE: Final = 12
"""Characters of the shortest line; with less room left the block is full."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The block, and what became of each line."""

    shown: tuple[Line, ...] = ()
    """In the order of the block."""
    text: str = ""
    outcomes: Outcomes = field(default_factory=Outcomes)

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """Every record whose text is in the block, once, in its order."""
        return tuple({key_of(record): record for each in self.shown for record in each.records}.values())


def pack(lines: Sequence[Line], options: RecallOptions, label_of: Callable[[MemoryRecord], str | None]) -> Packed:
    """Choose the lines that fit into the budget, order them and format the block.

    Args:
        lines: Best first, with the neighbors that complete them.
        label_of: The label of the space a record is from; `None` for the owner's own memory.
    """
    filling = _Filling(options, label_of, longest_text(options), _Room(options, block_of([""])))
    for line in lines[:PLACED_FIRST]:
        filling.place_alone(line)
    for line in lines:
        filling.place_completed(line)
    return _formatted(filling, {each.key: key_of(each.before) for each in lines if each.before is not None})


class _Room:
    """The rest of each budget of a block, characters first.

    Args:
        frame: The header and the end of the block.
    """

    def __init__(self, options: RecallOptions, frame: str) -> None:
        budgets = _budgets(options)
        self._budgets = [(most, count) for most, count, _ in budgets]
        self._least = [least for _, _, least in budgets]
        self._left = [most - count(frame) for most, count in self._budgets]

    def has_any(self) -> bool:
        """True if the shortest line may fit."""
        return all(map(le, self._least, self._left))

    def size(self, text: str) -> list[int]:
        """The size of a text in the units of each budget."""
        return [count(text) for _, count in self._budgets]

    def take(self, sizes: Iterable[Sequence[int]], returned: Sequence[int]) -> bool:
        """Take the sizes of some texts and give back that of another one; `False` if they do not fit."""
        left = [room + less - sum(more) for room, less, *more in zip(self._left, returned, *sizes, strict=True)]
        if min(left) < 0:
            return False
        self._left = left
        return True

    def holds(self, text: str) -> bool:
        """True if a whole block is within the budgets."""
        return all(count(text) <= most for most, count in self._budgets)


def _budgets(options: RecallOptions) -> list[tuple[int, Callable[[str], int], int]]:
    """Each budget, characters first: its size, the function that counts in it, and the size of the shortest line."""
    budgets = (
        (options.max_chars, len, _SHORTEST_LINE),
        (options.max_tokens, options.count_tokens, _SHORTEST_LINE // CHARS_PER_TOKEN),
    )
    return [(most, count, least) for most, count, least in budgets if most is not None and count is not None]


_SHOWN: Final[tuple[Reason, None]] = ("shown", None)


@dataclass(slots=True)
class _Filling:
    """A block that is being filled."""

    options: RecallOptions
    label_of: Callable[[MemoryRecord], str | None]
    longest: int
    room: _Room
    lines: dict[Key, Line] = field(default_factory=dict[Key, Line])
    texts: dict[Key, str] = field(default_factory=dict[Key, str])
    """Each line as it is formatted."""
    sizes: dict[Key, list[int]] = field(default_factory=dict[Key, list[int]])
    """The size of each line, with the line break before it."""
    days: dict[Key, str] = field(default_factory=dict[Key, str])
    """The heading of each line; empty if the caller formats the lines."""
    outcomes: Outcomes = field(default_factory=Outcomes)
    said: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])
    """The record of each text in the block by its words; without neighbors that are cut."""
    replies: dict[tuple[str, str], MemoryRecord] = field(default_factory=dict[tuple[str, str], MemoryRecord])
    """The record of each short reply in the block by its words and those of its question."""
    beside: set[Key] = field(default_factory=set[Key])
    """The keys of the records whose whole text stands beside a line."""

    def place_alone(self, line: Line) -> None:
        """Place a line without its neighbors."""
        if not self._is_repeated(line):
            self._place(line, _alone(line))

    def place_completed(self, line: Line) -> None:
        """Place a line with its neighbors, or alone if these are shown already or do not fit."""
        if self._is_repeated(line):
            return
        completed = self._with_what_is_new(line)
        if (_is_alone(completed) or not self._place(line, completed)) and line.key not in self.lines:
            self._place(line, _alone(line))

    def _is_repeated(self, line: Line) -> bool:
        """True if another text in the block says the same; the same reply to another question does not."""
        key, question = line.key, line.before
        if key in self.lines:
            return False
        if key in self.beside:
            return True
        twin = self.said.get(line.form)
        if question is not None and (form := equal_form(question.text)) != line.form:
            twin = self.replies.get((line.form, form))
        if twin is None or not is_one_statement(line.record, twin):
            return False
        self.outcomes[key] = "duplicate", twin.id
        return True

    def _place(self, line: Line, shown: Line) -> bool:
        """True if a line fits; it replaces the line of the same record, if there is one.

        Args:
            line: With all its neighbors.
            shown: With those that are shown.
        """
        key, taken = line.key, self.sizes.get(line.key)
        if taken is None and len(self.lines) == self.options.limit:
            self.outcomes[key] = "limit", None
            return False
        if not self.room.has_any():
            self.outcomes.setdefault(key, ("budget", None))
            return False
        day = "" if self.options.format is not None else local_day(line.record).isoformat()
        text = self.line_of([shown])
        size = self.room.size(f"\n{text}")
        more = [size, self.room.size(f"\n{day}")] if day and day not in self.days.values() else [size]
        if not self.room.take(more, taken or [0] * len(size)):
            self.outcomes.setdefault(key, ("budget", None))
            return False
        self.lines[key], self.sizes[key], self.texts[key], self.days[key] = shown, size, text, day
        self._note(line, shown)
        return True

    def line_of(self, turns: Sequence[Line]) -> str:
        """Turns as one line; those of one line are from one space."""
        return line_of(turns, self.longest, self.options, self.label_of(turns[0].record))

    def _note(self, line: Line, shown: Line) -> None:
        """Note what a line says."""
        self.outcomes[line.key] = _SHOWN
        self.said[line.form] = line.record
        if line.before is not None:
            self.replies[line.form, equal_form(line.before.text)] = line.record
        for each in () if _is_alone(shown) else whole_neighbors(shown, self.longest):
            self.said[equal_form(each.text)] = each
            self.beside.add(key_of(each))
            self.outcomes[key_of(each)] = _SHOWN

    def _with_what_is_new(self, line: Line) -> Line:
        if _is_alone(line):
            return line
        before, after = line.before, line.after
        if before is not None and (self._is_shown(before) or equal_form(before.text) in self.said):
            before = None
        if after is not None and (self._is_shown(after) or self._is_said(after.text)):
            after = None
        return replace(line, before=before, after=after)

    def _is_said(self, text: str) -> bool:
        """True if the block says a text; a short reply such as "Yes." may stand beside several questions."""
        twin = self.said.get(equal_form(text))
        return twin is not None and (key_of(twin) in self.lines or not is_short(text))

    def _is_shown(self, neighbor: MemoryRecord) -> bool:
        return key_of(neighbor) in self.lines or key_of(neighbor) in self.beside


def _is_alone(line: Line) -> bool:
    return line.before is None and line.after is None


def _alone(line: Line) -> Line:
    return line if _is_alone(line) else replace(line, before=None, after=None)


def _by_day(lines: Sequence[Sequence[Line]], filling: _Filling) -> list[str]:
    """The formatted lines, in groups of one day under its date, days and lines in the given order."""
    days: dict[str, list[str]] = {}
    for turns in lines:
        first = turns[0]
        text = filling.texts[first.key] if len(turns) == 1 else filling.line_of(turns)
        days.setdefault(filling.days[first.key], []).append(text)
    return [line for day, of_day in days.items() for line in ([day, *of_day] if day else of_day)]


def _formatted(filling: _Filling, questions: Mapping[Key, Key]) -> Packed:
    """The block of the lines; the last ones give way if a tokenizer counts more for a text than for its lines."""
    chosen = list(filling.lines.values())
    while chosen:
        lines = conversations(chosen, questions)
        text = block_of(_by_day(lines, filling))
        if filling.room.holds(text):
            shown = tuple(each for line in lines for each in line)
            return Packed(shown, text, filling.outcomes)
        filling.outcomes |= {key_of(record): ("budget", None) for record in chosen.pop().records}
    return Packed(outcomes=filling.outcomes)
