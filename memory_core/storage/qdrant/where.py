"""Scopes and conditions as Qdrant filters. Every filter that reaches records starts with their owner.

Equalities of all fields share one index (`codec.keys_of`); times and numbers that applications filter by have one each.
The other conditions are `undecided` here and tested on the client.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, cast

from memory_core.models import STATES, Scope
from memory_core.records.stored_links import link_keys
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import data_key, is_plain, key
from memory_core.values.limits import MAX_TAGS
from memory_core.where.conditions import TIME_FIELDS, AllOf, AnyOf, Comparison, Condition, DataCondition, FieldCondition
from memory_core.where.meaning import conditions_of
from memory_core.where.where import ALTERNATIVES, EQUAL_FIELDS, Where

Clause = models.Condition

_BOUNDS: Final = ("agent", "session", "collection")
"""The fields that bound a narrow handle."""
RANGED: Final = ("occurred_at", "created_at", "updated_at", "expires_at", "valid_from", "valid_to")
"""Times with an index."""
RATED: Final = ("importance", "confidence")
"""Numbers with an index."""
_RANGES: Final = (*TIME_FIELDS, *RATED)
_UNINDEXED: Final = ("accessed_at", "access_count", "rev", "version")
_EQUALITIES: Final = ("eq", "ne", "in", "nin")


def same(field: str, value: str) -> Clause:
    """The field, or one value of its list, equals this value."""
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


LEFT: Final = same("_keys", "left")
"""A person has left the record."""


def keyed(name: str, value: object) -> Clause:
    """The record has this value in the field, or among its values."""
    return same("_keys", key(name, value))


def any_of(field: str, values: Collection[str | int]) -> Clause:
    """The field, or one value of its list, is one of these."""
    among: Any = list(values)
    return models.FieldCondition(key=field, match=models.MatchAny(any=among))


def ranged(field: str, **bounds: Any) -> Clause:
    """The field is within these bounds, any of `gt`, `gte`, `lt` and `lte`: numbers or aware datetimes."""
    is_moment = any(isinstance(bound, datetime) for bound in bounds.values())
    bounded = models.DatetimeRange(**bounds) if is_moment else models.Range(**bounds)
    return models.FieldCondition(key=field, range=bounded)


def empty(field: str) -> Clause:
    """The field is missing or null."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))


def among(points: Collection[str]) -> Clause:
    """The point is one of these."""
    return models.HasIdCondition(has_id=list(points))


def all_of(*conditions: Clause, but_not: Sequence[Clause] = ()) -> models.Filter:
    """All of these, none of those."""
    return models.Filter(must=list(conditions), must_not=list(but_not) or None)


def ordered(
    where: Sequence[Clause], field: str, limit: int, *, descending: bool, fields: Sequence[str] | None = None
) -> models.QueryRequest:
    """The first points that satisfy the conditions, in the order of an indexed field, with some or all fields."""
    direction = models.Direction.DESC if descending else models.Direction.ASC
    return models.QueryRequest(
        query=models.OrderByQuery(order_by=models.OrderBy(key=field, direction=direction)),
        filter=all_of(*where),
        limit=limit,
        with_payload=True if fields is None else list(fields),
    )


def either(*parts: Clause) -> Clause:
    """At least one of these is true. Without any, this is false; an empty `should` would be true."""
    return models.Filter(should=list(parts)) if parts else among(())


def owned(*owners: str) -> Clause:
    """The record belongs to one of the owners, in the epochs of these keys."""
    return same("_owner", owners[0]) if len(owners) == 1 else any_of("_owner", owners)


def conditions(reach: Sequence[tuple[str, Scope]], where: Where, now: datetime | None) -> list[Clause]:
    """The conditions for a record in reach, but for those that `undecided` returns.

    Args:
        reach: The key of each owner (`owners.Owner.key`), and what bounds it.
        now: Excludes records that have expired by then; `None` includes them.
    """
    if any(_is_nothing(getattr(where, name)) for name in ALTERNATIVES) or len(set(where.tags_all or ())) > MAX_TAGS:
        return [either()]  # no record
    reached = [[owned(owner), *_given(scope, _BOUNDS)] for owner, scope in reach]
    found = reached[0] if len(reached) == 1 else [either(*(all_of(*one) for one in reached))]
    found += [*_fields(where), *_ranges(where)]
    if now is not None:
        found.append(either(empty("expires_at"), ranged("expires_at", gt=now)))
    return found + [clause for one in conditions_of(where) if (clause := _indexed(one)) is not None]


def _is_nothing(alternatives: Sequence[str] | None) -> bool:
    return alternatives is not None and not alternatives


def undecided(where: Where) -> list[Condition]:
    """The conditions that no index answers."""
    return [condition for condition in conditions_of(where) if _indexed(condition) is None]


def _given(values: Scope | Where, names: Sequence[str]) -> list[Clause]:
    """The conditions for those of these fields that have a value."""
    return [keyed(name, value) for name in names if (value := getattr(values, name)) is not None]


def _fields(where: Where) -> list[Clause]:
    listed = {
        "state": None if set(where.states) == set(STATES) else where.states,
        "role": where.roles,
        "kind": where.kinds,
        "tier": where.tiers,
        "tags": where.tags_any,
        "id": where.ids,
        "source_key": where.source_keys,
    }
    return [
        *_given(where, (*EQUAL_FIELDS, "under")),
        *(
            any_of("_keys", [key(name, value) for value in dict.fromkeys(values)])
            for name, values in listed.items()
            if values is not None
        ),
        *([] if where.left is None else [LEFT if where.left else all_of(but_not=[LEFT])]),
        *(keyed("tags", tag) for tag in dict.fromkeys(where.tags_all or ())),
        *(keyed("links", link) for link in link_keys(where.links or ())),
    ]


def _ranges(where: Where) -> list[Clause]:
    found: list[Clause] = []
    if where.min_importance is not None:
        found.append(ranged("importance", gte=where.min_importance))
    if where.min_confidence is not None:
        found.append(ranged("confidence", gte=where.min_confidence))
    if where.since is not None or where.until is not None:
        found.append(ranged("occurred_at", gte=where.since, lt=where.until))
    if where.as_of is not None:
        happened = all_of(empty("valid_from"), ranged("occurred_at", lte=where.as_of))
        found.append(either(ranged("valid_from", lte=where.as_of), happened))
        found.append(either(empty("valid_to"), ranged("valid_to", gt=where.as_of)))
    return found


def _indexed(condition: Condition) -> Clause | None:
    """The condition, if an index answers it."""
    if isinstance(condition, DataCondition):
        return _on_data(condition)
    if isinstance(condition, FieldCondition):
        return _on_field(condition)
    parts = [part for one in condition.conditions if (part := _indexed(one)) is not None]
    if len(parts) < len(condition.conditions):
        return None
    if isinstance(condition, AllOf):
        return all_of(*parts)
    return either(*parts) if isinstance(condition, AnyOf) else all_of(but_not=parts)


def _on_data(condition: DataCondition) -> Clause | None:
    (name, *deeper), values = condition.path, _values(condition)
    if deeper or not isinstance(name, str) or condition.op not in _EQUALITIES or not all(map(is_plain, values)):
        return None
    return _equal_to(condition.op, [same("_keys", data_key(name, value)) for value in values])


def _on_field(condition: FieldCondition) -> Clause | None:
    name, op, value = condition.field, condition.op, cast("Any", condition.value)
    if name in _UNINDEXED or op == "starts_with":
        return None
    if op == "exists":
        return all_of(but_not=[_equal(name, None)]) if value else _equal(name, None)
    if op in _EQUALITIES:
        values = _values(condition)
        if None not in values and name not in _RANGES and values:  # one look-up, however many there are
            return _equal_to(op, [any_of("_keys", [key(name, one) for one in values])])
        return _equal_to(op, [_equal(name, one) for one in values])
    return ranged(name, gte=value[0], lte=value[1]) if op == "between" else ranged(name, **{op: value})


def _values(condition: DataCondition | FieldCondition) -> Sequence[Any]:
    """The values that the condition compares with."""
    return cast("Any", condition.value) if condition.op in {"in", "nin"} else [condition.value]


def _equal_to(op: Comparison, values: Sequence[Clause]) -> Clause:
    return all_of(but_not=values) if op in {"ne", "nin"} else either(*values)


def _equal(name: str, value: Any) -> Clause:
    has_index = name in _RANGES
    if value is None:
        return empty(name) if has_index else all_of(but_not=[same("_keys", name)])
    return ranged(name, gte=value, lte=value) if has_index else keyed(name, value)
