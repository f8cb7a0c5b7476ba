"""What a recall is asked for and what it gives: frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar

from memory_core.checks import check_one_of, check_unit, shown
from memory_core.errors import InvalidInputError
from memory_core.models import RELATIONS, Hit, MemoryRecord, Mode, Relation, Role
from memory_core.where.value import Where

T = TypeVar("T")

DEFAULT_CHARS: Final = 4_000
"""The budget of a block, about 1,000 tokens."""
MAX_LINE_CHARS: Final = 1_000
"""Most characters of one memory in a block, before escaping: a passage and a little more."""
_SHORTEST_LINE: Final = 30
"""Characters of the shortest line, or four times its tokens: less room is not worth looking for one that fits."""


Reason = Literal[
    "shown", "question", "duplicate", "echo", "superseded", "excluded", "score", "no text", "budget", "filter", "floor"
]
"""Why a memory is in the block (`shown`) or is not:

- `question`: it only asks what the query asks, or asks something and no answer is known;
- `duplicate`: another line says the same; `echo`: an answer of the model that repeats what a user said;
- `superseded`: it is no longer true; `excluded`: `without` names it, for the prompt shows it anyway;
- `score`: less relevant than `min_score`; `no text`: it has data only; `budget`: it did not fit any more;
- `filter`, `floor`: the search found it only without the conditions, or without the floor.
"""


def shows_nothing_yet(record: MemoryRecord) -> bool:  # noqa: ARG001  (it is asked about each)
    """For a prompt that shows no memories yet."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """How memories are recalled for a prompt; adapters take one where their framework has room for settings."""

    max_chars: int | None = DEFAULT_CHARS
    """Budget of the block in characters, head and end included; `None` leaves it to `max_tokens`."""
    max_tokens: int | None = None
    """Budget of the block in what `count_tokens` counts."""
    count_tokens: Callable[[str], int] | None = None
    """How many tokens a text has, for the model of the prompt."""
    limit: int | None = None
    """At most this many memories, as far as the budget goes; `None` for as many as fit."""
    where: Where = field(default_factory=Where)
    """Conditions a memory must satisfy. With `as_of`, what was true then; else what is true now."""
    kinds: Sequence[str] = ()
    """Only these kinds, in addition to `where`."""
    roles: Sequence[Role] = ()
    """Only what these said, in addition to `where`."""
    mode: Mode = "hybrid"
    floor: bool = True
    """Recall nothing where nothing is relevant; see `BoundMemory.search`."""
    min_score: float = 0.0
    """Share of the best hit's score that a memory needs, 0 to 1."""
    diversity: float = 0.0
    """How much a line has to differ from those before it, 0 to 1; see `BoundMemory.search`. Repetitions are left out at
    any value."""
    shows_query: bool = True
    """The prompt shows the query, so a message of a user that is the query is left out. `False` for a search of words,
    which may be what somebody said; questions like the query are left out all the same."""
    latest_first: bool = True
    """Of what is about as relevant as the best show the latest first; else the best first."""
    neighbours: bool = True
    """Show a short reply with the question before it, and a question with the answer after it."""
    links: Sequence[Relation] = ()
    """Follow these relations one hop: what a recalled memory links to comes after it."""
    format: Callable[[MemoryRecord, str], str] | None = None
    """Makes the line of a memory from its record and the text to show. It is escaped like any other."""
    without: Callable[[MemoryRecord], bool] = shows_nothing_yet
    """Records to leave out, because the prompt shows them anyway."""

    def __post_init__(self) -> None:
        check_one_of("mode", self.mode, ("substring", "lexical", "vector", "hybrid"))
        check_unit("min_score", self.min_score)
        check_unit("diversity", self.diversity)
        for relation in self.links:
            check_one_of("a relation of links", relation, RELATIONS)
        counts = (("max_chars", self.max_chars), ("max_tokens", self.max_tokens), ("limit", self.limit))
        for name, budget in counts:
            _check_count(name, budget)
        if (self.max_tokens is None) != (self.count_tokens is None):
            raise InvalidInputError("max_tokens and count_tokens go together: a budget and the function that counts it")
        if self.max_chars is None and self.max_tokens is None:
            raise InvalidInputError("a block needs a budget: max_chars, or max_tokens with count_tokens")

    def fits(self, text: str) -> bool:
        """Whether a text is within the budget."""
        return (self.max_chars is None or len(text) <= self.max_chars) and (
            self.max_tokens is None or self.count_tokens is None or self.count_tokens(text) <= self.max_tokens
        )

    def sizes(self, text: str) -> list[int]:
        """What a text takes of each budget."""
        counters = ((self.max_chars, len), (self.max_tokens, self.count_tokens))
        return [count(text) for budget, count in counters if budget is not None and count is not None]

    def room(self, frame: str) -> list[int]:
        """What is left of each budget once the head and the end of the block are there."""
        budgets = [budget for budget in (self.max_chars, self.max_tokens) if budget is not None]
        return [budget - taken for budget, taken in zip(budgets, self.sizes(frame), strict=True)]

    def is_full(self, room: Sequence[int]) -> bool:
        """Whether no line is short enough for what is left of the budgets."""
        least = (
            least
            for budget, least in ((self.max_chars, _SHORTEST_LINE), (self.max_tokens, _SHORTEST_LINE // 4))
            if budget is not None
        )
        return any(left < smallest for left, smallest in zip(room, least, strict=True))

    def conditions(self) -> Where:
        """All conditions together.

        Raises:
            InvalidInputError: `where` and `kinds` or `roles` have nothing in common.
        """
        kinds = _both("kinds", self.where.kinds, self.kinds)
        return replace(self.where, kinds=kinds, roles=_both("roles", self.where.roles, self.roles))


@dataclass(frozen=True, slots=True)
class Considered:
    """What became of one memory that a recall considered."""

    hit: Hit
    """With `Hit.components`, the parts of its score."""
    rank: int
    """Its place in the search, from 1."""
    reason: Reason
    of: str | None = None
    """The id of the memory that says the same, of a `duplicate` and an `echo`."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is remembered about a question, for a prompt: `str(recalled)` is the block."""

    text: str
    """The block, marked as data and escaped; empty if nothing is remembered."""
    hits: tuple[Hit, ...]
    """The memories in it, in its order."""
    records: tuple[MemoryRecord, ...]
    """Every record of which a text stands in the block, questions and answers beside the hits included."""
    considered: tuple[Considered, ...] = ()
    """With `explain=True` every memory that was considered, in the order of the search, and why it is in the block or
    not; those that only a search without conditions or without the floor finds come last."""

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


def _check_count(name: str, value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InvalidInputError(f"{name} must be a whole number, 0 or more, not {shown(value)}")


def _both(name: str, first: Sequence[T], second: Sequence[T]) -> tuple[T, ...]:
    """What two conditions both allow; an empty one allows everything."""
    if not first or not second:
        return tuple(first or second)
    both = tuple(value for value in second if value in first)
    if not both:
        raise InvalidInputError(
            f"where asks for {name} {shown(first)} and the recall for {shown(second)}: nothing is both"
        )
    return both
