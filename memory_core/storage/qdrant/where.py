"""Scopes and conditions as Qdrant filters. Every filter that reaches records starts with their owner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Final, cast

from memory_core.limits import MAX_TAGS
from memory_core.models import STATES, Scope
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import data_key, is_plain, owner_key
from memory_core.storage.shared.values import link_keys
from memory_core.where.conditions import (
    GROUPS,
    NUMBER_FIELDS,
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

_EQUALS: Final = ("author", "agent", "session", "collection", "emotion")
EVERYTHING: Final = Where(states=STATES)


def same(key: str, value: str) -> Clause:
    """The field equals this value."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def holding(key: str, term: str) -> Clause:
    """The field, a text of terms separated by spaces, contains this one."""
    return models.FieldCondition(key=key, match=models.MatchText(text=term))


def any_of(key: str, values: Collection[str] | Collection[int]) -> Clause:
    """The field, or one value of its list, is one of these."""
    among: Any = list(values)
    return models.FieldCondition(key=key, match=models.MatchAny(any=among))


def between(key: str, least: Any, most: Any) -> Clause:
    """The field is between `least` and `most`, both included; numbers or aware datetimes, `None` for no bound."""
    if isinstance(least, datetime) or isinstance(most, datetime):
        return models.FieldCondition(key=key, range=models.DatetimeRange(gte=least, lte=most))
    return models.FieldCondition(key=key, range=models.Range(gte=least, lte=most))


def beyond(key: str, value: Any, *, descending: bool) -> Clause:
    """The field comes after `value` in this direction."""
    bounds: dict[str, Any] = {"lt" if descending else "gt": value}
    if isinstance(value, datetime):
        return models.FieldCondition(key=key, range=models.DatetimeRange(**bounds))
    return models.FieldCondition(key=key, range=models.Range(**bounds))


def up_to(key: str, moment: datetime) -> Clause:
    """The field is a moment at or before this one."""
    return models.FieldCondition(key=key, range=models.DatetimeRange(lte=moment))


def empty(key: str) -> Clause:
    """The field is missing or null."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))


def among(points: Collection[str]) -> Clause:
    """The point is one of these."""
    return models.HasIdCondition(has_id=list(points))


def all_of(*conditions: Clause, but_not: Sequence[Clause] = ()) -> models.Filter:
    """All of these, none of those."""
    return models.Filter(must=list(conditions), must_not=list(but_not) or None)


def owned(scope: Scope) -> Clause:
    """The record belongs to the owner."""
    return same("_owner", owner_key(scope))


def conditions(scope: Scope, where: Where, now: datetime | None) -> list[Clause] | None:
    """The conditions for a record in `scope`; `None` if no record can satisfy them.

    The conditions that `undecided` returns are not included.

    Args:
        where: Checked by `check_where`.
        now: Excludes records that have expired by then; `None` includes them.
    """
    if len(set(where.tags_all)) > MAX_TAGS or _names_none(where.ids) or _names_none(where.source_keys):
        return None
    found = [owned(scope), *_bound(scope), *_fields(where), *_ranges(where)]
    if now is not None:
        alive = beyond("expires_at", now, descending=False)
        found.insert(1, models.Filter(should=[empty("expires_at"), alive]))
    found += [_matching(condition) for condition in conditions_of(where) if _is_indexed(condition)]
    if where.ids is not None:
        found.append(any_of("id", dict.fromkeys(where.ids)))
    return found


def undecided(where: Where) -> list[Condition]:
    """The conditions that no index answers: on nested data, on an order within data, and on the prefix of a name."""
    return [condition for condition in conditions_of(where) if not _is_indexed(condition)]


def is_selective(scope: Scope, where: Where) -> bool:
    """Whether the conditions exclude any active, unexpired record of the owner."""
    return bool(scope.agent or scope.session or scope.collection) or where != Where()


def _bound(scope: Scope) -> list[Clause]:
    """The conditions of a narrow handle."""
    keys = {name: getattr(scope, name) for name in ("agent", "session", "collection")}
    return [same(name, value) for name, value in keys.items() if value is not None]


def _fields(where: Where) -> list[Clause]:
    equals = {name: getattr(where, name) for name in _EQUALS}
    found = [same(name, value) for name, value in equals.items() if value is not None]
    states = () if set(where.states) == set(STATES) else where.states
    listed = {"state": states, "role": where.roles, "kind": where.kinds, "tier": where.tiers, "tags": where.tags_any}
    found += [any_of(name, values) for name, values in listed.items() if values]
    found += [same("tags", tag) for tag in dict.fromkeys(where.tags_all)]
    found += [same("links", link) for link in link_keys(where.links)]
    if where.under is not None:
        found.append(same("_under", where.under))
    if where.source_keys is not None:
        found.append(any_of("source_key", dict.fromkeys(where.source_keys)))
    return found


def _matching(condition: Condition) -> Clause:
    """A condition that an index answers."""
    if isinstance(condition, DataCondition):
        return _compared(condition.op, condition.value, lambda value: same("_data", data_key(_key(condition), value)))
    if isinstance(condition, FieldCondition):
        return _field(condition)
    parts = [_matching(one) for one in condition.conditions]
    if isinstance(condition, AllOf):
        return all_of(*parts)
    return _any(parts) if isinstance(condition, AnyOf) else all_of(but_not=parts)


def _field(condition: FieldCondition) -> Clause:
    name, op, value = condition.field, condition.op, cast("Any", condition.value)
    if op == "exists":
        return all_of(but_not=[empty(name)]) if value else empty(name)
    if op == "between":
        return between(name, *value)
    if op in {"eq", "ne", "in", "nin"}:
        return _compared(op, value, lambda one: _equal(name, one))
    bounds: dict[str, Any] = {op: value}
    spans = models.DatetimeRange(**bounds) if name in TIME_FIELDS else models.Range(**bounds)
    return models.FieldCondition(key=name, range=spans)


def _compared(op: Comparison, value: Any, equal: Callable[[Any], Clause]) -> Clause:
    found = _any([equal(one) for one in value]) if op in {"in", "nin"} else equal(value)
    return all_of(but_not=[found]) if op in {"ne", "nin"} else found


def _any(parts: Sequence[Clause]) -> Clause:
    """At least one of these is true. Without any, this is false; an empty `should` would be true."""
    return models.Filter(should=list(parts)) if parts else among(())


def _equal(name: str, value: Any) -> Clause:
    if value is None:
        return empty(name)
    return between(name, value, value) if name in (*TIME_FIELDS, *NUMBER_FIELDS) else same(name, value)


def _names_none(values: Sequence[str] | None) -> bool:
    return values is not None and not values


def _is_indexed(condition: Condition) -> bool:
    if isinstance(condition, GROUPS):
        return all(map(_is_indexed, condition.conditions))
    if isinstance(condition, FieldCondition):
        return condition.op != "starts_with"
    values = cast("Sequence[object]", condition.value) if condition.op in {"in", "nin"} else [condition.value]
    is_equality = condition.op in {"eq", "ne", "in", "nin"}
    return (
        len(condition.path) == 1 and isinstance(condition.path[0], str) and is_equality and all(map(is_plain, values))
    )


def _key(condition: DataCondition) -> str:
    return str(condition.path[0])


def _ranges(where: Where) -> list[Clause]:
    found: list[Clause] = []
    if where.min_importance is not None:
        found.append(between("importance", where.min_importance, None))
    if where.min_confidence is not None:
        found.append(between("confidence", where.min_confidence, None))
    if where.since is not None or where.until is not None:
        found.append(
            models.FieldCondition(key="occurred_at", range=models.DatetimeRange(gte=where.since, lt=where.until))
        )
    if where.as_of is not None:
        found += _true_at(where.as_of)
    return found


def _true_at(moment: datetime) -> list[Clause]:
    happened = all_of(empty("valid_from"), up_to("occurred_at", moment))
    return [
        models.Filter(should=[up_to("valid_from", moment), happened]),
        models.Filter(should=[empty("valid_to"), beyond("valid_to", moment, descending=False)]),
    ]
