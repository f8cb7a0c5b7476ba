"""Scopes and conditions as Qdrant filters. Every filter that reaches records starts with their owner."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, cast

from memory_core.drafts import MAX_TAGS
from memory_core.models import NUMBER_FIELDS, STATES, TIME_FIELDS, DataCondition, FieldCondition, Scope, Where
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.payload import data_key, is_plain, owner_key
from memory_core.storage.sqlite.rows import link_keys

Condition = models.Condition

_EQUALS: Final = ("author", "agent", "session", "collection", "emotion")
EVERYTHING: Final = Where(states=STATES)


def same(key: str, value: str) -> Condition:
    """The field has this value."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def holding(key: str, term: str) -> Condition:
    """The field, a text of terms with spaces between them, has this one."""
    return models.FieldCondition(key=key, match=models.MatchText(text=term))


def any_of(key: str, values: Collection[str] | Collection[int]) -> Condition:
    """The field, or one value of a list, is among these."""
    among: Any = list(values)
    return models.FieldCondition(key=key, match=models.MatchAny(any=among))


def between(key: str, least: Any, most: Any) -> Condition:
    """The field is from `least` to `most`, both included; numbers or aware datetimes, `None` for no bound."""
    if isinstance(least, datetime) or isinstance(most, datetime):
        return models.FieldCondition(key=key, range=models.DatetimeRange(gte=least, lte=most))
    return models.FieldCondition(key=key, range=models.Range(gte=least, lte=most))


def beyond(key: str, value: Any, *, descending: bool) -> Condition:
    """The field comes after `value` in this direction."""
    bounds: dict[str, Any] = {"lt" if descending else "gt": value}
    if isinstance(value, datetime):
        return models.FieldCondition(key=key, range=models.DatetimeRange(**bounds))
    return models.FieldCondition(key=key, range=models.Range(**bounds))


def up_to(key: str, moment: datetime) -> Condition:
    """The field is a moment that has come by then."""
    return models.FieldCondition(key=key, range=models.DatetimeRange(lte=moment))


def empty(key: str) -> Condition:
    """The field is missing or null."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))


def among(points: Collection[str]) -> Condition:
    """The point is one of these."""
    return models.HasIdCondition(has_id=list(points))


def all_of(*conditions: Condition, but_not: Sequence[Condition] = ()) -> models.Filter:
    """All of these, none of those."""
    return models.Filter(must=list(conditions), must_not=list(but_not) or None)


def owned(scope: Scope) -> Condition:
    """The record belongs to the owner."""
    return same("_owner", owner_key(scope))


def conditions(scope: Scope, where: Where, now: datetime | None) -> list[Condition] | None:
    """What a record must satisfy to be seen through `scope`; `None` if none can.

    What `undecided` names is left open.

    Args:
        where: Checked by `check_where`.
        now: Records that have expired by then do not count; with `None` they do.
    """
    if len(set(where.tags_all)) > MAX_TAGS or _names_none(where.ids) or _names_none(where.source_keys):
        return None
    found = [owned(scope), *_bound(scope), *_fields(where), *_ranges(where), *map(_field, where.fields)]
    if now is not None:
        alive = beyond("expires_at", now, descending=False)
        found.insert(1, models.Filter(should=[empty("expires_at"), alive]))
    plain = [*where.data.items(), *((str(item.path[0]), item.value) for item in where.matching if _is_indexed(item))]
    found += [same("_data", data_key(name, value)) for name, value in plain]
    if where.ids is not None:
        found.append(any_of("id", dict.fromkeys(where.ids)))
    return found


def undecided(where: Where) -> list[DataCondition]:
    """The conditions on nested data that no index answers."""
    return [item for item in where.matching if not _is_indexed(item)]


def is_selective(scope: Scope, where: Where) -> bool:
    """Whether the conditions exclude any active, unexpired record of the owner."""
    return bool(scope.agent or scope.session or scope.collection) or where != Where()


def _bound(scope: Scope) -> list[Condition]:
    """What a narrow handle insists on."""
    keys = {name: getattr(scope, name) for name in ("agent", "session", "collection")}
    return [same(name, value) for name, value in keys.items() if value is not None]


def _fields(where: Where) -> list[Condition]:
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


def _field(condition: FieldCondition) -> Condition:
    name, value = condition.field, condition.value
    if condition.op == "eq":
        return _equal(name, value)
    if condition.op == "ne":
        return models.Filter(must_not=[_equal(name, value)])
    if condition.op == "in":
        # Of no alternatives none holds; an empty `should` would hold of everything.
        alternatives = [_equal(name, one) for one in cast("Sequence[object]", value)]
        return models.Filter(should=list(alternatives)) if alternatives else among(())
    bounds: dict[str, Any] = {condition.op: value}
    spans = models.DatetimeRange(**bounds) if name in TIME_FIELDS else models.Range(**bounds)
    return models.FieldCondition(key=name, range=spans)


def _equal(name: str, value: Any) -> Condition:
    if value is None:
        return empty(name)
    return between(name, value, value) if name in (*TIME_FIELDS, *NUMBER_FIELDS) else same(name, value)


def _names_none(values: Sequence[str] | None) -> bool:
    return values is not None and not values


def _is_indexed(condition: DataCondition) -> bool:
    return len(condition.path) == 1 and condition.op == "eq" and is_plain(condition.value)


def _ranges(where: Where) -> list[Condition]:
    found: list[Condition] = []
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


def _true_at(moment: datetime) -> list[Condition]:
    happened = all_of(empty("valid_from"), up_to("occurred_at", moment))
    return [
        models.Filter(should=[up_to("valid_from", moment), happened]),
        models.Filter(should=[empty("valid_to"), beyond("valid_to", moment, descending=False)]),
    ]
