"""The policy, the steps and the result of maintenance: values that can be shown, stored and undone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from difflib import get_close_matches
from typing import Final, Literal, TypeGuard, cast, get_args

from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Patch
from memory_core.records.draft_to_record import TIER_OF_KIND
from memory_core.values.checks import check_one_of, shown
from memory_core.values.value import Value
from memory_core.where.where import Where

FADED: Final = 0.05
"""Records with less strength than this are archived: an importance of 0.5 falls below it after 3.3 half-lives."""
REFLECTION: Final = "reflection"
"""The kind of the notes of a reflector."""
CORRECTS: Final = "corrects"
"""The key of a derived fact's data with the id of the fact that it corrects."""
DAY: Final = timedelta(days=1)
KINDS: Final = (*TIER_OF_KIND, "pattern", "event", "insight")
"""The kinds of the records that this library writes."""

Reason = Literal[
    "extracted",
    "summary",
    "reflection",
    "duplicate",
    "alike",
    "correction",
    "contradiction",
    "faded",
    "expired",
    "budget",
    "deleted",
]
"""The reason why a step is taken. A `correction` replaces what the same speaker said before, a `contradiction` what
another one said."""
Period = Literal["day", "week", "month"]
_Duplicates = Literal["merge", "propose", "keep"]
_Contradictions = Literal["supersede", "propose", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MaintainPolicy(Value):
    """The way in which `maintain` treats its findings.

    Turns of conversations, steps of a bank and summaries are neither merged nor corrected, because they document what
    was said and done. Records with the tag `pinned` stay active.

    Raises:
        InvalidInputError: A number is out of range, a word is not one of those named, or a value has the wrong type.
    """

    duplicates: _Duplicates = "merge"
    """For records with equal texts: one stays and gets the tags of the others, which become `compacted`. Texts are
    equal if they differ only in spaces, case, quotation marks and a full stop at the end."""
    alike: _Duplicates = "propose"
    """For records whose texts look alike: the same words in another order, or one letter in one word. They may say
    different things, even opposite ones, so look at the proposals rather than have them merged."""
    contradictions: _Contradictions = "propose"
    """For a fact that a later one of the same speaker corrects, as a model said: it is archived, and its validity ends
    when the later one begins. What one speaker says about another's fact is only ever proposed."""
    half_lives: Mapping[str, float] = field(default_factory=dict[str, float])
    """For each kind, the days after which an unread record has half its strength; other kinds do not fade. A record
    whose strength is below `FADED` is archived. `maintain` refuses a kind of which there is no record."""
    lifetimes: Mapping[str, float] = field(default_factory=dict[str, float])
    """For each kind, the days after which a record is archived, read or not."""
    compact_after: float | None = None
    """Days after which a turn that a summary covers becomes `compacted`, unless it was read since or is as important as
    `IMPORTANT`; `None` keeps all turns active."""
    most_records: int | None = None
    """Most active records of an owner, at least 1; the weakest beyond that are archived."""
    most_bytes: int | None = None
    """Most bytes of their texts and data together, in UTF-8, at least 1."""
    delete_after: float | None = None
    """Days after which an archived record is deleted for good, unless it is pinned or was superseded; `None` deletes
    nothing."""
    periods: tuple[Period, ...] = ()
    """Periods of the person (weeks from Monday) that a summarizer also summarises, from the summaries of their
    sessions."""
    where: Where = field(default_factory=Where)
    """The records to maintain."""

    def __post_init__(self) -> None:
        check_one_of("duplicates", self.duplicates, get_args(_Duplicates))
        check_one_of("alike", self.alike, get_args(_Duplicates))
        check_one_of("contradictions", self.contradictions, get_args(_Contradictions))
        _check_days("half_lives", self.half_lives)
        _check_days("lifetimes", self.lifetimes)
        _check_periods(self.periods)
        for name, least in (("most_records", 1), ("most_bytes", 1), ("compact_after", 0), ("delete_after", 0)):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value >= least):  # NaN is no limit, either
                raise InvalidInputError(
                    f"{name} must be a number from {least} on, or None for no limit, not {shown(value)}"
                )


def _check_days(name: str, times: object) -> None:
    if not isinstance(times, Mapping):
        raise InvalidInputError(f"{name} must be a mapping of kinds to days such as {{'note': 30}}, not {shown(times)}")
    for kind, days in cast("Mapping[object, object]", times).items():
        if not (_is_number(days) and 0 < days < float("inf")):
            raise InvalidInputError(f"{name} of {shown(kind)} must be a number of days above 0, not {shown(days)}")


def insist_on_kinds(policy: MaintainPolicy, kinds: Collection[str]) -> None:
    """Refuse times for a kind that there is not: most likely another one is meant, which would never end.

    Args:
        policy: The policy that is wanted.
        kinds: Of the stored records; without any, every kind may be right.

    Raises:
        InvalidInputError: A kind of `half_lives` or `lifetimes` is neither stored nor one of the kinds of this library.
    """
    known = {*kinds, *KINDS}
    for name in ("half_lives", "lifetimes"):
        for kind in getattr(policy, name):
            if kinds and kind not in known:
                near: list[str] = get_close_matches(str(kind), known, 1) or sorted(kinds)[:9]
                raise InvalidInputError(
                    f"{name} names the kind {shown(kind)}, of which there is no record; did you mean {', '.join(near)}?"
                )


def _check_periods(periods: object) -> None:
    if not isinstance(periods, tuple | list):
        raise InvalidInputError(f"periods must be a tuple such as ('week',), not {shown(periods)}")
    for period in cast("tuple[object, ...]", periods):
        check_one_of("period", period, get_args(Period))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Change(Value):
    """A change of one record, and how to revert it."""

    id: str
    version: int
    """The version of the record before the change; the change is made to no other version."""
    patch: Patch
    undo: Patch


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Step(Value):
    """Writes that belong together: records that are added in one transaction, then changes of records, one by one."""

    reason: Reason
    kept: str
    """The text that stays or is new; empty if nothing replaces the others."""
    gone: tuple[str, ...]
    """The texts that are no longer found, except through `history`, `as_of` or their state."""
    changes: tuple[Change, ...]
    added: tuple[Draft, ...] = ()
    """New records, with ids, so that the step can be reverted."""
    deleted: Mapping[str, int] = field(default_factory=dict[str, int])
    """Ids and versions of the records that are deleted for good, which nothing reverts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Value):
    """The cost of a model."""

    calls: int = 0
    """Calls, repeated ones included."""
    failed_calls: int = 0
    """The calls that raised, took too long, or brought an answer that cannot be read."""
    prompt_tokens: int = 0
    """Tokens of the messages, as `Manager.count_tokens` counts them; by default a quarter of the characters."""
    answer_tokens: int = 0
    """The same of the answers."""
    refused_lines: int = 0
    """Lines of answers that were not used, because they name what was not shown, or because there are too many."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Maintenance(Value):
    """The result of `maintain`: what it did, or would do."""

    steps: tuple[Step, ...] = ()
    proposed: tuple[Step, ...] = ()
    """Steps that the policy only proposes; `apply_steps` applies them."""
    skipped: tuple[Step, ...] = ()
    """Steps not applied, or only in part, because a record was changed in the meantime; call `maintain` again."""
    is_dry_run: bool = False
    usage: Usage = field(default_factory=Usage)
    """The cost of the model that manages the memory."""


DEFAULT_POLICY: Final = MaintainPolicy()
