"""The options and the result of a recall: frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from memory_core.errors import InvalidInputError
from memory_core.models import RELATIONS, Hit, MemoryRecord, Mode, Relation
from memory_core.values.checks import check_one_of, check_unit, shown
from memory_core.where.where import Where

DEFAULT_CHARS: Final = 4_000
"""The budget of a block that is asked for, about 1,000 tokens."""
PUSHED_CHARS: Final = 1_500
"""The budget of a block that is pushed into a prompt."""
PUSHED_SHARE: Final = 0.3
"""Share of the best line's score that each memory in it needs: a count would cut off equally good ones."""
MAX_LINE_CHARS: Final = 1_000
"""Maximum number of characters of one memory in a block, before escaping: a passage and a little more."""
MOST_BYTES: Final = 32_000_000
"""Bytes of the records that a search of a recall reads: it may find ten thousand, of which little is shown. More than
thirty texts of a megabyte have as many."""
CHARS_PER_TOKEN: Final = 4
"""Approximate value for English, used where a size in tokens need not be exact."""


Reason = Literal[
    "shown",
    "question",
    "duplicate",
    "superseded",
    "excluded",
    "score",
    "no text",
    "limit",
    "budget",
    "author",
    "copy",
    "small talk",
    "adds nothing",
    "filter",
    "floor",
]
"""The reason why a memory is in the block (`shown`) or is not:

- `question`: it only asks what the query asks;
- `duplicate`: another line says the same;
- `superseded`: it is no longer true; `excluded`: the prompt already shows it;
- `score`: it is less relevant than `min_score`; `no text`: it has data only;
- `limit`: the block has as many memories as it may have; `budget`: it did not fit;
- `author`, `copy`: there was no room left for it, because its author has a third of the lines already, or because it
  copies the question and adds little;
- `small talk`: of a pushed block: it says no more about the message than chance and small talk do; `adds nothing`: the
  line would only say "Nice.";
- `filter`, `floor`: the search finds it only without the conditions, or without the floor.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """Options of a recall; adapters accept them in the settings of their framework.

    The defaults are those of `PULLED`, for what a tool asks for. `PUSHED`, which `recall` takes if it is given none,
    has those for a block that is put into a prompt unasked.
    """

    pushed: bool = False
    """Recall nothing for small talk, and no line that adds nothing: for a block that is put into every prompt."""
    trusted: Collection[str] = ()
    """Authors and roles whose share of the lines is not limited, beside the owner of the memory, the owner's agents
    (the roles `assistant` and `tool`, and what an agent wrote itself), those whom the owner has answered and records
    without an author."""
    max_chars: int | None = DEFAULT_CHARS
    """Budget of the block in characters, header and end included; `None` to use `max_tokens` only."""
    max_tokens: int | None = None
    """Budget of the block in tokens, as counted by `count_tokens`."""
    count_tokens: Callable[[str], int] | None = None
    """Counts the tokens of a text for the model of the prompt."""
    limit: int | None = None
    """At most this many memories, within the budget; `None` for as many as fit."""
    where: Where = field(default_factory=Where)
    """Conditions a memory must satisfy, such as `Where(roles=["user"])`. With `as_of`, memories valid then; otherwise
    those valid now."""
    mode: Mode = "hybrid"
    floor: bool = True
    """Recall nothing if nothing is relevant; see `BoundMemory.search`."""
    min_score: float = 0.0
    """Share of the best hit's score that a memory needs, 0 to 1."""
    diversity: float = 0.0
    """The degree to which lines should differ from those before them, 0 to 1; see `BoundMemory.search`. Repetitions
    are left out at any value."""
    neighbors: bool = True
    """Show a short reply with the question before it, and a question with the answer after it."""
    links: Sequence[Relation] = ()
    """Follow links of these relations one hop: linked memories come after the recalled one."""
    format: Callable[[MemoryRecord, str], str] | None = None
    """Makes the line of a memory from its record and the text to show. The line is escaped like any other."""

    def __post_init__(self) -> None:
        if isinstance(self.trusted, str):
            raise InvalidInputError(f"trusted is a list of authors and roles, such as [{shown(self.trusted)}]")
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

    def about_chars(self) -> int:
        """About how many characters the budgets allow."""
        budgets = (self.max_chars, None if self.max_tokens is None else self.max_tokens * CHARS_PER_TOKEN)
        return min(budget for budget in budgets if budget is not None)


@dataclass(frozen=True, slots=True)
class Considered:
    """The outcome for one memory that a recall considered."""

    hit: Hit
    """The hit, with the parts of its score in `Hit.components`."""
    rank: int
    """Its rank in the search, from 1."""
    reason: Reason
    of: str | None = None
    """For a `duplicate`, the id of the memory that says the same."""
    later: Reason | None = None
    """The reason why it stands lower in the block than its rank says, if it does: `author`, `copy` or `question`."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The memories about a question, for a prompt: `str(recalled)` is the block."""

    text: str
    """The block, marked as data and escaped; empty if nothing was recalled."""
    hits: tuple[Hit, ...]
    """The memories in the block, in its order."""
    records: tuple[MemoryRecord, ...]
    """Every record whose text is in the block, questions and answers added to hits included."""
    considered: tuple[Considered, ...] = ()
    """With `explain=True`, every memory considered, in the order of the search, and why it is in the block or not;
    those found only without the conditions or without the floor come last."""

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


def _check_count(name: str, value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InvalidInputError(f"{name} must be a whole number, 0 or more, not {shown(value)}")


PULLED: Final = RecallOptions()
"""Options of what a tool asks for: generous, because silence costs an agent more than one line too many."""
PUSHED: Final = RecallOptions(pushed=True, max_chars=PUSHED_CHARS, min_score=PUSHED_SHARE)
"""Options of a block that is put into a prompt: what is about as relevant as the best, and nothing for small talk."""
