"""Types of conditions: on values in `data`, on the fields of a record, and groups of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, Union, cast, get_args

from memory_core.models import NameField, NumberField, TimeField
from memory_core.values.value import Value

Comparison = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "between", "starts_with", "like", "exists"]
"""The comparisons of a `DataCondition` and a `FieldCondition`: those of document databases, without `$`."""

COMPARISONS: Final[tuple[Comparison, ...]] = get_args(Comparison)
TIME_FIELDS: Final[tuple[TimeField, ...]] = get_args(TimeField)
NUMBER_FIELDS: Final[tuple[NumberField, ...]] = get_args(NumberField)
NAME_FIELDS: Final[tuple[NameField, ...]] = get_args(NameField)
TAGS: Final = "tags"
"""The one field with several values."""


@dataclass(frozen=True, slots=True, repr=False)
class DataCondition(Value):
    """A condition on one value inside `data`: `DataCondition(("address", "city"), "eq", "Oslo")`.

    | op | true if |
    |---|---|
    | `eq` | the path leads to an equal value; arrays and objects are compared whole, `1` equals `1.0` but not `true` |
    | `ne` | `eq` is false, so also if the path leads to nothing |
    | `in` | `eq` is true for one of an array of values |
    | `nin` | `in` is false, so also if the path leads to nothing |
    | `gt`, `gte`, `lt`, `lte` | numbers compare so with numbers, or texts with texts by code points; false for \
anything else, a missing path included |
    | `between` | `gte` is true for the first and `lte` for the second of two values |
    | `starts_with` | the path leads to a text that begins with this one, case included |
    | `like` | the path leads to a text of this pattern: `%` stands for any characters, `_` for one; case included |
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

    Comparisons mean the same as for a `DataCondition`. The value of an unset field is `None`: `eq`, `ne`, `in` and
    `nin` accept it as a value, `exists` tests for it, and every other comparison with it is false. Times and numbers
    have an order; names have none, and `starts_with` is for names. One of the `tags` has to satisfy the condition; for
    `ne` and `nin` none of them may equal a given value, and `None` stands for a record without tags.
    """

    field: TimeField | NumberField | NameField | Literal["tags"]
    op: Comparison
    value: object
    """An aware datetime, a number or a text, of the field's type; a sequence of them for `in` and `nin`, two for
    `between`; a boolean for `exists`. A time may also be given in ISO 8601, as in JSON."""

    def __post_init__(self) -> None:
        if self.field in TIME_FIELDS:
            object.__setattr__(self, "value", _moments(self.value))


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Value):
    """True if at least one of the conditions is true; false without conditions."""

    any_of: Sequence[Condition]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Of the group."""
        return self.any_of


@dataclass(frozen=True, slots=True, repr=False)
class AllOf(Value):
    """True if all conditions are true."""

    all_of: Sequence[Condition]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Of the group."""
        return self.all_of


@dataclass(frozen=True, slots=True, repr=False)
class NoneOf(Value):
    """True if none of the conditions is true."""

    none_of: Sequence[Condition]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Of the group."""
        return self.none_of


Condition: TypeAlias = Union[DataCondition, FieldCondition, AnyOf, AllOf, NoneOf]  # noqa: UP007  (its classes name it)
"""An element of `Where.matching`."""
Group: TypeAlias = AnyOf | AllOf | NoneOf
GROUPS: Final = (AnyOf, AllOf, NoneOf)


def _moments(value: object) -> object:
    """Convert a text, or the texts of a list, to datetimes; others are left to `check_where`, which refuses them."""
    if isinstance(value, list | tuple):
        return tuple(_moment(each) for each in cast("Sequence[object]", value))
    return _moment(value)


def _moment(value: object) -> object:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return value
