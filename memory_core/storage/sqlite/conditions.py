"""Scopes and conditions as SQL: fixed fragments, values only ever as parameters."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, cast

from memory_core.encoding import encode_json
from memory_core.matching import has_keyword, is_same, matches_all
from memory_core.models import STATES, DataCondition, FieldCondition, Scope, Where
from memory_core.storage.sqlite.rows import link_keys, micros
from memory_core.storage.sqlite.schema import OWNER_BITS

Parameter = str | int | float | None

_EQUALS: Final = ("author", "agent", "session", "collection", "emotion")
_SIGNS: Final = {"eq": "IS", "ne": "IS NOT", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_LISTED: Final = "(SELECT value FROM json_each(?))"
"""Any number of values in one parameter."""


class Conditions:
    """A conjunction under construction."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.parameters: list[Parameter] = []

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
        return " AND ".join(self._parts)


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
    for name in ("agent", "session", "collection"):
        bound = getattr(scope, name)
        if bound is not None:
            found.add(f"{name} = ?", bound)
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
    if where.keywords:
        found.add("has_keyword(text, ?)", _json(where.keywords))
    for condition in where.fields:
        _field(found, condition)
    _data(found, where)
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


def _field(found: Conditions, condition: FieldCondition) -> None:
    name = condition.field  # one of a fixed list
    if condition.op == "in":
        values = [_parameter(value) for value in cast("Sequence[object]", condition.value)]
        marks = ", ".join("?" * len(values))
        found.add(f"({name} IN ({marks}){' OR ' + name + ' IS NULL' if None in values else ''})", *values)
    else:
        found.add(f"{name} {_SIGNS[condition.op]} ?", _parameter(condition.value))


def _parameter(value: object) -> Parameter:
    return micros(value) if isinstance(value, datetime) else cast("Parameter", value)


def _data(found: Conditions, where: Where) -> None:
    for name, value in where.data.items():
        # What the stored JSON must contain is a cheap first test; numbers have several spellings.
        spelling = "" if isinstance(value, int | float) and not isinstance(value, bool) else encode_json(value)
        found.add("instr(data, ?)", f"{encode_json(name)}:{spelling}")
    if where.data:
        found.add("has_data(data, ?)", encode_json(where.data))


def _matching(found: Conditions, where: Where) -> None:
    for condition in where.matching:
        name, value = condition.path[-1], condition.value
        if condition.op == "eq" and isinstance(name, str) and (value is None or isinstance(value, str | bool)):
            found.add("instr(data, ?)", f"{encode_json(name)}:{encode_json(value)}")  # cheap first test, as above
    if where.matching:
        found.add("matches_data(data, ?)", encode_json([(c.path, c.op, c.value) for c in where.matching]))


def _json(values: Collection[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def install(db: sqlite3.Connection) -> None:
    """Give a connection the functions that conditions on `data` need."""
    db.create_function("has_data", 2, _has_data, deterministic=True)
    db.create_function("matches_data", 2, _matches_data, deterministic=True)
    db.create_function("has_keyword", 2, _has_keyword, deterministic=True)


def _has_data(data: str, wanted: str) -> bool:
    """Whether a JSON object has these values. SQLite's own functions lose digits, NUL and escaped keys."""
    held = json.loads(data)
    return all(name in held and is_same(held[name], value) for name, value in _parsed(wanted).items())


def _matches_data(data: str, wanted: str) -> bool:
    return matches_all(json.loads(data), _conditions(wanted))


def _has_keyword(text: str, keywords: str) -> bool:
    return has_keyword(text, _words(keywords))


@lru_cache(maxsize=16)
def _words(keywords: str) -> tuple[str, ...]:
    return tuple(json.loads(keywords))


@lru_cache(maxsize=16)
def _conditions(wanted: str) -> tuple[DataCondition, ...]:
    return tuple(DataCondition(tuple(path), op, value) for path, op, value in json.loads(wanted))


@lru_cache(maxsize=16)
def _parsed(wanted: str) -> dict[str, object]:
    return dict(json.loads(wanted))
