"""Scopes and conditions as Qdrant filters. Every filter that reaches records starts with their owner.

Equalities of all fields share one index (`codec.keys_of`); times and numbers that applications filter by have one each.
The other conditions are `undecided` here and tested on the client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Final, cast

from memory_core.checks import MAX_TAGS
from memory_core.models import STATES, Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import data_key, is_plain, key
from memory_core.storage.shared.prepared import link_keys
from memory_core.where.conditions import (
    GROUPS,
    TIME_FIELDS,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    DataCondition,
    FieldCondition,
)
from memory_core.where.meaning import conditions_of
from memory_core.where.value import Where

Clause = models.Condition

_BOUNDS: Final = ("agent", "session", "collection")
"""What bounds a narrow handle."""
_EQUALS: Final = ("author", "agent", "session", "collection", "emotion", "under")
RANGED: Final = ("occurred_at", "created_at", "updated_at", "expires_at", "valid_from", "valid_to")
"""Times with an index."""
RATED: Final = ("importance", "confidence")
"""Numbers with an index."""
_UNINDEXED: Final = ("accessed_at", "access_count", "rev", "version")
EVERYTHING: Final = Where(states=STATES)


def same(field: str, value: str) -> Clause:
    """The field, or one value of its list, equals this value."""
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def keyed(name: str, value: object) -> Clause:
    """The record has this value in the field, or among its values."""
    return same("_keys", key(name, value))


def holding(field: str, term: str) -> Clause:
    """The field, a text of terms separated by spaces, contains this one."""
    return models.FieldCondition(key=field, match=models.MatchText(text=term))


def any_of(field: str, values: Collection[str] | Collection[int]) -> Clause:
    """The field, or one value of its list, is one of these."""
    among: Any = list(values)
    return models.FieldCondition(key=field, match=models.MatchAny(any=among))


def between(field: str, least: Any, most: Any) -> Clause:
    """The field is between `least` and `most`, both included; numbers or aware datetimes, `None` for no bound."""
    return _ranged(field, gte=least, lte=most)


def beyond(field: str, value: Any, *, descending: bool) -> Clause:
    """The field comes after `value` in this direction."""
    return _ranged(field, lt=value) if descending else _ranged(field, gt=value)


def _ranged(field: str, **bounds: Any) -> Clause:
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
    where: Sequence[Clause], field: str, limit: int, fields: Sequence[str], *, descending: bool
) -> models.QueryRequest:
    """The first points that satisfy the conditions, in the order of an indexed field, with some fields of each."""
    direction = models.Direction.DESC if descending else models.Direction.ASC
    return models.QueryRequest(
        query=models.OrderByQuery(order_by=models.OrderBy(key=field, direction=direction)),
        filter=all_of(*where),
        limit=limit,
        with_payload=list(fields),
    )


def either(*parts: Clause) -> Clause:
    """At least one of these is true. Without any, this is false; an empty `should` would be true."""
    return models.Filter(should=list(parts)) if parts else among(())


def owned(*owners: str) -> Clause:
    """The record belongs to one of the owners, in the epochs of these keys."""
    return same("_owner", owners[0]) if len(owners) == 1 else any_of("_owner", owners)


def conditions(reach: Sequence[tuple[str, Scope]], where: Where, now: datetime | None) -> list[Clause] | None:
    """The conditions for a record in reach; `None` if no record can satisfy them.

    The conditions that `undecided` returns are not included.

    Args:
        reach: The key of each owner (`owners.Owner.key`), and what bounds it.
        where: Checked by `check_where`.
        now: Excludes records that have expired by then; `None` includes them.
    """
    named_none = any(names is not None and not names for names in (where.ids, where.source_keys))
    if named_none or len(set(where.tags_all)) > MAX_TAGS:
        return None
    reached = [[owned(owner), *_given(scope, _BOUNDS)] for owner, scope in reach]
    found = reached[0] if len(reached) == 1 else [either(*(all_of(*one) for one in reached))]
    found += [*_fields(where), *_ranges(where)]
    if now is not None:
        found.append(either(empty("expires_at"), beyond("expires_at", now, descending=False)))
    return found + [_matching(condition) for condition in conditions_of(where) if _is_indexed(condition)]


def undecided(where: Where) -> list[Condition]:
    """The conditions that no index answers."""
    return [condition for condition in conditions_of(where) if not _is_indexed(condition)]


def is_selective(scope: Scope, where: Where) -> bool:
    """Whether the conditions exclude any active, unexpired record of the owner."""
    return bool(scope.agent or scope.session or scope.collection) or where != Where()


def _given(values: Scope | Where, names: Sequence[str]) -> list[Clause]:
    """The conditions for those of these fields that have a value."""
    return [keyed(name, value) for name in names if (value := getattr(values, name)) is not None]


def _fields(where: Where) -> list[Clause]:
    listed = {
        "state": () if set(where.states) == set(STATES) else where.states,
        "role": where.roles,
        "kind": where.kinds,
        "tier": where.tiers,
        "tags": where.tags_any,
        "id": dict.fromkeys(where.ids or ()),
        "source_key": dict.fromkeys(where.source_keys or ()),
    }
    return [
        *_given(where, _EQUALS),
        *(any_of("_keys", [key(name, value) for value in values]) for name, values in listed.items() if values),
        *(keyed("tags", tag) for tag in dict.fromkeys(where.tags_all)),
        *(keyed("links", link) for link in link_keys(where.links)),
    ]


def _ranges(where: Where) -> list[Clause]:
    found: list[Clause] = []
    if where.min_importance is not None:
        found.append(between("importance", where.min_importance, None))
    if where.min_confidence is not None:
        found.append(between("confidence", where.min_confidence, None))
    if where.since is not None or where.until is not None:
        found.append(_ranged("occurred_at", gte=where.since, lt=where.until))
    if where.as_of is not None:
        happened = all_of(empty("valid_from"), between("occurred_at", None, where.as_of))
        found.append(either(between("valid_from", None, where.as_of), happened))
        found.append(either(empty("valid_to"), beyond("valid_to", where.as_of, descending=False)))
    return found


def _matching(condition: Condition) -> Clause:
    """A condition that an index answers."""
    if isinstance(condition, DataCondition):
        name = str(condition.path[0])
        return _compared(condition.op, condition.value, lambda value: same("_keys", data_key(name, value)))
    if isinstance(condition, FieldCondition):
        return _field(condition)
    parts = [_matching(one) for one in condition.conditions]
    if isinstance(condition, AllOf):
        return all_of(*parts)
    return either(*parts) if isinstance(condition, AnyOf) else all_of(but_not=parts)


def _field(condition: FieldCondition) -> Clause:
    name, op, value = condition.field, condition.op, cast("Any", condition.value)
    if op == "exists":
        return all_of(but_not=[_unset(name)]) if value else _unset(name)
    if op == "between":
        return between(name, *value)
    if op in {"eq", "ne", "in", "nin"}:
        return _compared(op, value, lambda one: _equal(name, one))
    return _ranged(name, **{op: value})


def _compared(op: Comparison, value: Any, equal: Callable[[Any], Clause]) -> Clause:
    found = either(*(equal(one) for one in value)) if op in {"in", "nin"} else equal(value)
    return all_of(but_not=[found]) if op in {"ne", "nin"} else found


def _equal(name: str, value: Any) -> Clause:
    if value is None:
        return _unset(name)
    return between(name, value, value) if name in (*TIME_FIELDS, *RATED) else keyed(name, value)


def _unset(name: str) -> Clause:
    return empty(name) if name in (*TIME_FIELDS, *RATED) else all_of(but_not=[same("_keys", name)])


def _is_indexed(condition: Condition) -> bool:
    if isinstance(condition, GROUPS):
        return all(map(_is_indexed, condition.conditions))
    if isinstance(condition, FieldCondition):
        return condition.op != "starts_with" and condition.field not in _UNINDEXED
    values = cast("Sequence[object]", condition.value) if condition.op in {"in", "nin"} else [condition.value]
    is_equality = condition.op in {"eq", "ne", "in", "nin"}
    return (
        len(condition.path) == 1 and isinstance(condition.path[0], str) and is_equality and all(map(is_plain, values))
    )
