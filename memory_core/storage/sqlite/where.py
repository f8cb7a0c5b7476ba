"""Scopes and conditions as SQL: fixed fragments, values only ever as parameters.

What SQLite cannot decide exactly is left to `Asked`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from memory_core.encoding import encode_json
from memory_core.models import STATES, Scope
from memory_core.storage.shared.values import link_keys, micros
from memory_core.storage.sqlite.asked import Asked, Parameter
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.where.conditions import GROUPS, TAGS, AllOf, Condition, DataCondition, FieldCondition, NoneOf
from memory_core.where.meaning import conditions_of
from memory_core.where.value import Where

_EQUALS: Final = ("author", "agent", "session", "collection", "emotion")
_SIGNS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_LISTED: Final = "(SELECT value FROM json_each(?))"
"""Any number of values in one parameter."""
_NO_TAGS: Final = "'[]'"


class Conditions:
    """A conjunction under construction."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.parameters: list[Parameter] = []
        self.asked: Asked | None = None
        """What Python decides, of the records that satisfy the rest."""

    def add(self, fragment: str, *parameters: Parameter) -> None:
        """One more condition; `fragment` is a literal of this module."""
        self._parts.append(fragment)
        self.parameters.extend(parameters)

    def any_of(self, column: str, values: Collection[str]) -> None:
        """`column` has one of the values; no values, no condition."""
        if values:
            self.add(f"{column} IN {_LISTED}", _json(values))

    @property
    def sql(self) -> str:
        """What SQLite decides."""
        return " AND ".join(self._parts)

    @property
    def name(self) -> Hashable:
        """Equal for equal conditions."""
        return (self.sql, *self.parameters, self.asked and self.asked.name)


def owner_range(owner: int) -> tuple[int, int]:
    """The first and the last key an owner's rows can have."""
    return owner << OWNER_BITS, ((owner + 1) << OWNER_BITS) - 1


def conditions(owner: int, scope: Scope, where: Where, now: int) -> Conditions:
    """What a record must satisfy to be seen through `scope` at `now` (microseconds).

    Args:
        where: Checked by `check_where`.
    """
    found = Conditions()
    found.add("record.key BETWEEN ? AND ?", *owner_range(owner))
    found.add("record.owner = ?", owner)  # says the same, to the indexes
    found.add("(expires_at IS NULL OR expires_at > ?)", now)
    # A plus keeps SQLite from reading all of a session when it can look up the few records that are named.
    aside = "" if where.ids is None and where.source_keys is None else "+"
    for name in ("agent", "session", "collection"):
        bound = getattr(scope, name)
        if bound is not None:
            found.add(f"{aside}{name} = ?", bound)
    if set(where.states) != set(STATES):
        found.any_of("state", where.states)
    for name in _EQUALS:
        value = getattr(where, name)
        if value is not None:
            found.add(f"{name} = ?", value)
    found.any_of("role", where.roles)
    found.any_of("kind", where.kinds)
    found.any_of("tier", where.tiers)
    _listed(found, where)
    _under(found, where.under)
    _tags_any(found, where)
    _all_listed(found, "tags", where.tags_all)
    _linked(found, where)
    _ranges(found, where)
    _matching(found, where)
    return found


def is_selective(scope: Scope, where: Where) -> bool:
    """Whether the conditions exclude any active, unexpired record of the owner."""
    narrowed = scope.agent or scope.session or scope.collection
    return bool(narrowed) or where != Where()


def _listed(found: Conditions, where: Where) -> None:
    for column, values in (("id", where.ids), ("source_key", where.source_keys)):
        if values is not None:
            found.add(f"{column} IN {_LISTED}", _json(values))


def _under(found: Conditions, path: str | None) -> None:
    if path is not None:
        # What begins with "path/" sorts before "path0"; the range is for the index.
        found.add("collection >= ? AND collection < ?", path, path + "0")
        found.add("(collection = ? OR collection > ?)", path, path + "/")


def _tags_any(found: Conditions, where: Where) -> None:
    if where.tags_any:
        found.add(f"EXISTS (SELECT 1 FROM json_each(tags) WHERE value IN {_LISTED})", _json(where.tags_any))


def _all_listed(found: Conditions, column: str, values: Collection[str]) -> None:
    if values:
        wanted = set(values)
        found.add(
            f"(SELECT count(*) FROM json_each({column}) WHERE value IN {_LISTED}) = ?", _json(wanted), len(wanted)
        )


def _linked(found: Conditions, where: Where) -> None:
    if where.links:
        found.add("links <> '[]'")  # in the words of the index
        _all_listed(found, "links", link_keys(where.links))


def _ranges(found: Conditions, where: Where) -> None:
    if where.min_importance is not None:
        found.add("importance >= ?", where.min_importance)
    if where.min_confidence is not None:
        found.add("confidence >= ?", where.min_confidence)
    if where.since is not None:
        found.add("occurred_at >= ?", micros(where.since))
    if where.until is not None:
        found.add("occurred_at < ?", micros(where.until))
    if where.as_of is not None:
        moment = micros(where.as_of)
        found.add("coalesce(valid_from, occurred_at) <= ? AND (valid_to IS NULL OR valid_to > ?)", moment, moment)


def _matching(found: Conditions, where: Where) -> None:
    asked: list[Condition] = []
    for condition in conditions_of(where):
        if touches_data(condition):
            asked.append(condition)
        else:
            found.add(*_sql(condition))
        if isinstance(condition, DataCondition):
            _spelling(found, condition)
    if asked or where.keywords:
        found.asked = Asked(where.keywords, asked, _field)


def touches_data(condition: Condition) -> bool:
    """Whether a condition is on `data`, or one of its group is."""
    if isinstance(condition, GROUPS):
        return any(map(touches_data, condition.conditions))
    return isinstance(condition, DataCondition)


def _spelling(found: Conditions, condition: DataCondition) -> None:
    """What the stored JSON must contain is a cheap first test; numbers have several spellings."""
    name, value = condition.path[-1], condition.value
    if condition.op == "eq" and isinstance(name, str):
        spelling = encode_json(value) if value is None or isinstance(value, str | bool) else ""
        found.add("instr(data, ?)", f"{encode_json(name)}:{spelling}")


def _sql(condition: Condition) -> tuple[str, *tuple[Parameter, ...]]:
    """A condition on fields as a fragment that is true or false, never NULL, and its parameters."""
    if isinstance(condition, FieldCondition):
        return _field(condition)
    assert not isinstance(condition, DataCondition)  # noqa: S101  (for type checkers: those are asked)
    parts = [_sql(one) for one in condition.conditions]
    joined = (" AND " if isinstance(condition, AllOf) else " OR ").join(fragment for fragment, *_ in parts)
    parameters = [value for _, *values in parts for value in values]
    joined = joined or ("TRUE" if isinstance(condition, AllOf) else "FALSE")
    return f"{'NOT ' if isinstance(condition, NoneOf) else ''}({joined})", *parameters


def _field(condition: FieldCondition) -> tuple[str, *tuple[Parameter, ...]]:
    op, value = condition.op, cast("Any", condition.value)
    if op in {"ne", "nin"}:
        fragment, *parameters = _field(replace(condition, op="eq" if op == "ne" else "in"))
        return f"NOT {fragment}", *parameters
    if condition.field == TAGS:
        return _tags(condition)
    name = condition.field  # one of a fixed list
    if op == "exists":
        return f"({name} IS {'NOT ' if value else ''}NULL)", *()
    if op == "in":
        fragment, *parameters = _among(name, [one for one in value if one is not None])
        return (
            f"({name} IS NULL OR {fragment})" if None in value else f"({name} IS NOT NULL AND {fragment})",
            *parameters,
        )
    if op == "eq":
        return f"({name} IS ?)", _parameter(value)
    if op == "between":
        return f"({name} IS NOT NULL AND {name} BETWEEN ? AND ?)", *map(_parameter, value)
    if op == "starts_with":  # the first comparison is for the index
        return f"({name} IS NOT NULL AND {name} >= ? AND substr({name}, 1, ?) = ?)", value, len(value), value
    return f"({name} IS NOT NULL AND {name} {_SIGNS[op]} ?)", _parameter(value)


def _tags(condition: FieldCondition) -> tuple[str, *tuple[Parameter, ...]]:
    op, value = condition.op, cast("Any", condition.value)
    if op == "exists" or (op == "eq" and value is None):
        return f"(tags {'<>' if value else '='} '[]')", *()
    if op == "starts_with":
        return "EXISTS (SELECT 1 FROM json_each(tags) WHERE substr(value, 1, ?) = ?)", len(value), value
    wanted = [value] if op == "eq" else [one for one in value if one is not None]
    fragment = f"EXISTS (SELECT 1 FROM json_each(tags) WHERE value IN {_LISTED})"
    return f"({fragment}{' OR tags = ' + _NO_TAGS if op == 'in' and None in value else ''})", _json(wanted)


def _among(name: str, values: Sequence[Any]) -> tuple[str, *tuple[Parameter, ...]]:
    if all(isinstance(value, str) for value in values):
        return f"{name} IN {_LISTED}", _json(values)
    return f"{name} IN ({', '.join('?' * len(values))})", *map(_parameter, values)  # SQLite's JSON rounds numbers


def _parameter(value: object) -> Parameter:
    return micros(value) if isinstance(value, datetime) else cast("Parameter", value)


def _json(values: Collection[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
