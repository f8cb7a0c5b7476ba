"""Pack candidates into the budget of a block, best first: pure functions.

The best hits get their lines first. Then the neighbors of each line are added if they fit, and the other candidates
follow. What one step puts into the block, no later step takes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.recall.block import block_of, day_of, line_of, lines_by_day, longest_text, neighbor_fits_whole
from memory_core.recall.candidates import Candidate
from memory_core.recall.selection import BEST, is_one_statement, latest_first
from memory_core.recall.statements import is_mere_reply
from memory_core.recall.values import Reason, RecallOptions
from memory_core.retrieval.equal_texts import equal_form

Outcomes = dict[str, tuple[Reason, str | None]]
"""For the id of each candidate, whether it is shown or why not, and the id of the memory that says the same."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The block, and what became of each candidate."""

    shown: tuple[Candidate, ...] = ()
    """In the order of the block."""
    text: str = ""
    outcomes: Outcomes = field(default_factory=Outcomes)

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """Every record whose text is in the block, once, in its order."""
        return tuple({record.id: record for each in self.shown for record in each.records}.values())


def pack(candidates: Sequence[Candidate], options: RecallOptions) -> Packed:
    """Choose the lines that fit into the budget, order them and format the block.

    Args:
        candidates: Best first, with the neighbors that complete them.
    """
    filling = _Filling(options, longest_text(options.max_chars, options.max_tokens), options.room(block_of([""])))
    for candidate in candidates[:BEST]:
        filling.place_alone(candidate)
    for candidate in candidates:
        filling.place_completed(candidate)
    return _formatted(filling, {c.record.id: c.before.id for c in candidates if c.before is not None})


_SHOWN: Final[tuple[Reason, None]] = ("shown", None)


@dataclass(slots=True)
class _Filling:
    """A block that is being filled."""

    options: RecallOptions
    longest: int
    room: list[int]
    lines: dict[str, Candidate] = field(default_factory=dict[str, Candidate])
    outcomes: Outcomes = field(default_factory=Outcomes)
    said: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])
    """The record of each text in the block by its words; without neighbors that are cut."""
    replies: dict[tuple[str, str], MemoryRecord] = field(default_factory=dict[tuple[str, str], MemoryRecord])
    """The record of each short reply in the block by its words and those of its question."""
    beside: set[str] = field(default_factory=set[str])
    """The ids of the records that stand beside a line."""

    def place_alone(self, candidate: Candidate) -> None:
        """Place a candidate without its neighbors."""
        if not self._is_repeated(candidate):
            self._place(_alone(candidate), candidate)

    def place_completed(self, candidate: Candidate) -> None:
        """Place a candidate with its neighbors, or alone if these are shown already or do not fit."""
        if self._is_repeated(candidate):
            return
        completed = self._with_what_is_new(candidate)
        if completed.records == (candidate.record,) or not self._place(completed, candidate):
            self._place(_alone(candidate), candidate)

    def _is_repeated(self, candidate: Candidate) -> bool:
        """Whether another text in the block says the same; the same reply to another question does not."""
        record, question = candidate.record, candidate.before
        if record.id in self.lines:
            return False
        if record.id in self.beside:
            return True
        twin = self.said.get(candidate.words)
        if question is not None:
            twin = self.replies.get((candidate.words, equal_form(question.text)))
        if twin is None or not is_one_statement(record, twin):
            return False
        self.outcomes[record.id] = "duplicate", twin.id
        return True

    def _place(self, line: Candidate, candidate: Candidate) -> bool:
        """Whether a line of a candidate fits; it replaces the line of the same record, if there is one."""
        known = self.lines.get(line.record.id)
        if known is None and len(self.lines) == self.options.limit:
            self.outcomes[line.record.id] = "limit", None
            return False
        left = [] if self.options.is_full(self.room) else self._room_beside(line, known)
        if not left or min(left) < 0:
            self.outcomes.setdefault(line.record.id, ("budget", None))
            return False
        self.room = left
        self.lines[line.record.id] = line
        self.outcomes[line.record.id] = _SHOWN
        self.said[line.words] = line.record
        if candidate.before is not None:
            self.replies[line.words, equal_form(candidate.before.text)] = line.record
        for each in (line.before, line.after):
            if each is not None and neighbor_fits_whole(each, self.longest):
                self.said[equal_form(each.text)] = each
                self.beside.add(each.id)
                self.outcomes[each.id] = _SHOWN
        return True

    def _room_beside(self, line: Candidate, known: Candidate | None) -> list[int]:
        """What would be left of each budget; a value below 0 if the line does not fit."""
        taken = self._sizes(line, has_day=known is not None)
        if known is not None:
            taken = [size - less for size, less in zip(taken, self._sizes(known, has_day=True), strict=True)]
        return [room - size for room, size in zip(self.room, taken, strict=True)]

    def _sizes(self, line: Candidate, *, has_day: bool) -> list[int]:
        """The size of a line and, with the first line of a day, of its date."""
        text, day = "\n" + line_of([line], self.longest, self.options), day_of(line.record, self.options)
        is_shown = has_day or not day or any(day_of(each.record, self.options) == day for each in self.lines.values())
        return self.options.sizes(text if is_shown else f"\n{day}{text}")

    def _with_what_is_new(self, candidate: Candidate) -> Candidate:
        before, after = (self._unless_shown(each) for each in (candidate.before, candidate.after))
        return replace(candidate, before=before, after=after)

    def _unless_shown(self, neighbor: MemoryRecord | None) -> MemoryRecord | None:
        """The neighbor, unless it is in the block; a short reply such as "Yes." may stand beside several questions."""
        if neighbor is None or neighbor.id in self.lines or neighbor.id in self.beside:
            return None
        is_said = equal_form(neighbor.text) in self.said and not is_mere_reply(neighbor.text)
        return None if is_said else neighbor


def _alone(candidate: Candidate) -> Candidate:
    return replace(candidate, before=None, after=None)


def _formatted(filling: _Filling, asked: Mapping[str, str]) -> Packed:
    """The block of the lines; the last ones give way if a tokenizer counts more for a text than for its lines."""
    chosen, options = list(filling.lines.values()), filling.options
    while chosen:
        lines = conversations(latest_first(chosen) if options.latest_first else chosen, asked)
        text = block_of(lines_by_day(lines, filling.longest, options))
        if options.fits(text):
            return Packed(tuple(each for line in lines for each in line), text, filling.outcomes)
        filling.outcomes |= {record.id: ("budget", None) for record in chosen.pop().records}
    return Packed(outcomes=filling.outcomes)


def conversations(chosen: Sequence[Candidate], asked: Mapping[str, str]) -> list[tuple[Candidate, ...]]:
    """Put replies behind the questions that they answer, in one line, at the best place of its turns.

    Args:
        asked: For the id of a reply, the id of the question.
    """
    by_id = {candidate.record.id: candidate for candidate in chosen}
    lines: dict[str, dict[str, Candidate]] = {}
    for candidate in chosen:
        turns = [candidate.record.id]
        while asked.get(turns[-1]) in by_id.keys() - set(turns):
            turns.append(asked[turns[-1]])
        lines.setdefault(turns[-1], {}).update((turn, by_id[turn]) for turn in reversed(turns))
    return [tuple(line.values()) for line in lines.values()]
