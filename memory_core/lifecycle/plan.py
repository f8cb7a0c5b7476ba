"""What maintenance is asked to do, and what it would do or has done: values that can be shown, stored and undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from memory_core.errors import InvalidInputError
from memory_core.models import Patch
from memory_core.plain import Value
from memory_core.where.value import Where

FADED: Final = 0.05
"""A record that matters less than this is archived: an importance of 0.5 after 3.3 half-lives."""
PINNED: Final = "pinned"
"""Records with this tag never fade."""

Reason = Literal["duplicate", "correction", "faded", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MaintainPolicy(Value):
    """What `maintain` does with what it finds.

    Turns of conversations, steps of a bank and summaries are not merged or corrected: they are what was said and done.
    Records with the tag `pinned` never fade.

    Raises:
        InvalidInputError: A number is out of range.
    """

    duplicates: Literal["merge", "propose", "keep"] = "merge"
    """What happens to records that say the same: one stays and takes their tags over, the others become `compacted`."""
    contradictions: Literal["supersede", "propose", "keep"] = "propose"
    """And to a statement that a later one corrects: it is archived, and valid until the later one is."""
    half_lives: Mapping[str, float] = field(default_factory=dict[str, float])
    """By kind the days after which a record that nobody reads matters half as much; other kinds do not fade. What is
    left of its importance then decides: below `FADED` it is archived."""
    most_records: int | None = None
    """As many records of an owner stay active; those that matter least are archived."""
    most_chars: int | None = None
    """And as many characters of their texts."""
    where: Where = field(default_factory=Where)
    """Which records to look at."""

    def __post_init__(self) -> None:
        for kind, days in self.half_lives.items():
            if not 0 < days < float("inf"):
                raise InvalidInputError(f"the half-life of {kind!r} must be a number of days above 0, not {days!r}")
        for name in ("most_records", "most_chars"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidInputError(f"{name} must be 0 or more, or None for no limit, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Change(Value):
    """A change of one record, and the way back."""

    id: str
    version: int
    """Of the record before the change, which is not made to any other version."""
    patch: Patch
    undo: Patch


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Step(Value):
    """Changes that belong together: one record that stays, and those whose place it takes."""

    reason: Reason
    kept: str
    """The text that stays; empty where nothing takes the place of what goes."""
    gone: tuple[str, ...]
    """The texts that are no longer found, except through `history`, `as_of` or their state."""
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Maintenance(Value):
    """What `maintain` did, or would do."""

    steps: tuple[Step, ...] = ()
    proposed: tuple[Step, ...] = ()
    """What the policy leaves to somebody else; `apply_steps` does it."""
    skipped: tuple[Step, ...] = ()
    """Not done, or in part only, because somebody else changed one of the records meanwhile; call `maintain` again."""
    is_dry_run: bool = False


DEFAULT_POLICY: Final = MaintainPolicy()
