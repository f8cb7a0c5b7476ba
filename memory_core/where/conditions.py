"""Conditions as values: on what `data` holds, on the fields of a record, and groups of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, Union, cast, get_args

from memory_core.plain import Value

TimeField = Literal["created_at", "updated_at", "accessed_at", "occurred_at", "expires_at", "valid_from", "valid_to"]
NumberField = Literal["importance", "confidence", "access_count", "rev", "version"]
NameField = Literal["id", "source_key", "role", "kind", "tier", "author", "emotion", "agent", "session", "collection"]
Comparison = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "between", "starts_with", "exists"]
"""How a `DataCondition` and a `FieldCondition` compare: as document databases do, without their `$`."""

COMPARISONS: Final[tuple[Comparison, ...]] = get_args(Comparison)
TIME_FIELDS: Final[tuple[TimeField, ...]] = get_args(TimeField)
NUMBER_FIELDS: Final[tuple[NumberField, ...]] = get_args(NumberField)
NAME_FIELDS: Final[tuple[NameField, ...]] = get_args(NameField)
TAGS: Final = "tags"
"""The one field that holds several values."""


@dataclass(frozen=True, slots=True, repr=False)
class DataCondition(Value):
    """A condition on one value inside `data`: `DataCondition(("address", "city"), "eq", "Oslo")`.

    | op | holds if |
    |---|---|
    | `eq` | the path leads to an equal value; arrays and objects are compared whole, `1` equals `1.0` but not `true` |
    | `ne` | `eq` does not hold, so also where nothing is at the path |
    | `in` | `eq` holds for one of an array of values |
    | `nin` | `in` does not hold, so also where nothing is at the path |
    | `gt`, `gte`, `lt`, `lte` | a number compared with a number, or a text with a text by code points; anything else, \
a missing path included, does not hold |
    | `between` | `gte` the first and `lte` the second of two values |
    | `starts_with` | the path leads to a text that begins with this one, case included |
    | `exists` | with `True`: the path leads to a value, `null` included; with `False`: it does not |
    """

    path: tuple[str | int, ...]
    """Keys of objects and positions in arrays, counted from 0."""
    op: Comparison
    value: object
    """Any JSON value."""


@dataclass(frozen=True, slots=True, repr=False)
class FieldCondition(Value):
    """A condition on a field of the record: `FieldCondition("accessed_at", "lt", a_month_ago)`.

    Comparisons mean what they mean for a `DataCondition`. `None` is what a field holds that is not set: `eq`, `ne`,
    `in` and `nin` take it as a value, every other comparison does not hold there, and `exists` asks for it. Moments
    and numbers have an order; names have none, and `starts_with` is for names. Of `tags`, one has to satisfy the
    condition; `ne` and `nin` ask that none does, and `None` is a record without tags.
    """

    field: TimeField | NumberField | NameField | Literal["tags"]
    op: Comparison
    value: object
    """An aware datetime, a number or a text, as the field holds; a sequence of them for `in` and `nin`, two for
    `between`; a boolean for `exists`. A moment may also be given in ISO 8601, as JSON has it."""

    def __post_init__(self) -> None:
        if self.field in TIME_FIELDS:
            object.__setattr__(self, "value", _moments(self.value))


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Value):
    """At least one of the conditions holds; of no conditions none does."""

    any_of: Sequence[Condition]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Of the group."""
        return self.any_of


@dataclass(frozen=True, slots=True, repr=False)
class AllOf(Value):
    """All conditions hold."""

    all_of: Sequence[Condition]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Of the group."""
        return self.all_of


@dataclass(frozen=True, slots=True, repr=False)
class NoneOf(Value):
    """None of the conditions holds."""

    none_of: Sequence[Condition]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Of the group."""
        return self.none_of


Condition: TypeAlias = Union[DataCondition, FieldCondition, AnyOf, AllOf, NoneOf]  # noqa: UP007  (its classes name it)
"""What `Where.matching` holds."""
Group: TypeAlias = AnyOf | AllOf | NoneOf
GROUPS: Final = (AnyOf, AllOf, NoneOf)


def _moments(value: object) -> object:
    """A text, or the texts of a list, as moments; what is not a moment stays, and `check_where` says what is wrong."""
    if isinstance(value, list | tuple):
        return tuple(_moments(each) for each in cast("Sequence[object]", value))
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return value
