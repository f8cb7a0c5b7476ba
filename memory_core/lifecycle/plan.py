"""What maintenance is asked to do, and what it would do or has done: values that can be shown, stored and undone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from memory_core.models import Patch
from memory_core.plain import Value
from memory_core.where.value import Where

Reason = Literal["duplicate", "correction"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MaintainPolicy(Value):
    """What `maintain` does with what it finds.

    Turns of conversations, steps of a bank and summaries stay as they are: they are what was said and done.
    """

    duplicates: Literal["merge", "propose", "keep"] = "merge"
    """What happens to records that say the same: one stays and takes their tags over, the others become `compacted`."""
    contradictions: Literal["supersede", "propose", "keep"] = "propose"
    """And to a statement that a later one corrects: it is archived, and valid until the later one is."""
    where: Where = field(default_factory=Where)
    """Which records to look at."""


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
    """The text that stays."""
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
