"""Scopes and conditions as SQL: fixed fragments, values only ever as parameters.

Keywords and conditions on `data` are left to `PythonConditions`, because SQLite cannot decide them exactly: its JSON
functions lose digits of numbers, NUL characters and escaped keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from memory_core.models import STATES, Scope
from memory_core.records.stored_links import link_keys
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.sqlite.codec import SqlRow
from memory_core.storage.sqlite.damage import explaining
from memory_core.storage.sqlite.schema import OWNER_BITS
from memory_core.values.json_text import encode_json
from memory_core.where.conditions import GROUPS, TAGS, AllOf, AnyOf, Condition, DataCondition, FieldCondition, NoneOf
from memory_core.where.meaning import Test, conditions_of, keyword_test, matcher
from memory_core.where.where import ANY_STATE, EQUAL_FIELDS, Where

Parameter = str | int | float | None
Fragment = tuple[str, *tuple[Parameter, ...]]


class _Row(NamedTuple):
    """The parts of a record that conditions are tested on."""

    data: object
    fields: Sequence[object]
    """For each condition on a field, whether SQL found it true."""


class PythonConditions:
    """Keywords and conditions that Python decides from a row of `columns`.

    Args:
        keywords: The text has to contain one of them; empty for no such condition.
        conditions: Conditions on `data`, and groups that contain one.
        on_field: Translates a condition on a field, inside a group, to SQL.
    """

    def __init__(
        self,
        keywords: Sequence[str],
        conditions: Sequence[Condition],
        on_field: Callable[[FieldCondition], Fragment],
    ) -> None:
        self._keywords = tuple(keywords)
        self._condition = AllOf(conditions)
        self._on_field = on_field
        self._fields: dict[int, int] = {}
        """The position of a condition among the columns of fields, by the identity of the condition."""
        self._fragments: list[str] = []
        self.parameters: list[Parameter] = []
        """Parameters of `columns`."""
        described = encode_json(self._described(self._condition))
        self.columns = ", ".join(["text" if keywords else "NULL", self._data(), *self._fragments])
        self.name: Hashable = (self._keywords, described, self.columns, *self.parameters)
        """Equal for equal conditions."""

    def _data(self) -> str:
        return "data" if touches_data(self._condition) else "'null'"

    def test(self) -> Callable[[SqlRow], bool]:
        """Build the test of a row once, for use on many rows."""
        keywords = keyword_test(self._keywords) if self._keywords else None
        conditions = matcher(self._condition, self._field_test) if self._condition.conditions else None

        def test(row: SqlRow) -> bool:
            text, data, *fields = row
            with explaining("the text or the data of a record"):
                if conditions is not None and not conditions(_Row(json.loads(data), fields)):
                    return False
                return keywords is None or keywords(text)

        return test

    def _field_test(self, condition: FieldCondition) -> Test:
        field = itemgetter(self._fields[id(condition)])
        return lambda row: bool(field(row.fields))

    def _described(self, condition: Condition) -> list[object]:
        if isinstance(condition, GROUPS):
            return [GROUPS.index(type(condition)), [self._described(one) for one in condition.conditions]]
        if isinstance(condition, DataCondition):
            return [condition.path, condition.op, condition.value]
        fragment, *parameters = self._on_field(condition)
        self._fields[id(condition)] = len(self._fragments)
        self._fragments.append(fragment)
        self.parameters += parameters
        return [len(self._fragments)]


_SIGNS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_LISTED: Final = "(SELECT value FROM json_each(?))"
"""Any number of values in one parameter."""
_IN_SPANS: Final = (
    "record.key IN (SELECT turn.key FROM json_each(?) CROSS JOIN record AS turn ON turn.owner = ? "
    "AND turn.session = json_extract(value, '$[0]') "
    "AND turn.occurred_at BETWEEN json_extract(value, '$[1]') AND json_extract(value, '$[2]'))"
)
_NO_TAGS: Final = "'[]'"
FEW_VALUES: Final = 50
"""Values and conditions of a `Where` that are translated to SQL in a tenth of a millisecond."""


class Conditions:
    """A conjunction under construction."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.parameters: list[Parameter] = []
        self.in_python: PythonConditions | None = None
        """The conditions that Python decides, on the records that satisfy the SQL."""

    def add(self, fragment: str, *parameters: Parameter) -> None:
        """One more condition; `fragment` is a literal of this module."""
        self._parts.append(fragment)
        self.parameters.extend(parameters)

    def any_of(self, column: str, values: Collection[str] | None) -> None:
        """Require one of the values in `column`, which none is of no values; `None` requires nothing."""
        if values is not None:
            self.add(f"{column} IN {_LISTED}", _json(values))

    @property
    def sql(self) -> str:
        """The conditions that SQLite decides."""
        return " AND ".join(self._parts)

    @property
    def name(self) -> Hashable:
        """Equal for equal conditions."""
        return (self.sql, *self.parameters, self.in_python and self.in_python.name)


SHOWN: Final = "record.key NOT IN (SELECT key FROM hidden)"
"""For a file that has hidden rows."""
STAYING: Final = "record.key NOT IN (SELECT key FROM hidden WHERE NOT stays)"
"""The same for the rules of a write, which see what is hidden until it follows its sources."""


def owner_range(owner: int) -> tuple[int, int]:
    """The first and the last key an owner's rows can have."""
    return owner << OWNER_BITS, ((owner + 1) << OWNER_BITS) - 1


def conditions(
    owner: int, scope: Scope, where: Where, now: int, *, hides: bool = False, shown: str = SHOWN
) -> Conditions:
    """The conditions a record must satisfy to be visible in `scope` at `now` (microseconds).

    Args:
        where: Checked by `check_where`.
        hides: True if the file has hidden rows (`Owner.hides`).
        shown: The rows that are left out: `SHOWN` or `STAYING`.
    """
    found = Conditions()
    found.add("record.key BETWEEN ? AND ?", *owner_range(owner))
    if hides:
        found.add(shown)
    spans = {id(condition): some for condition in where.matching or () if (some := _spans(condition))}
    # Redundant, but lets SQLite use the indexes, unless a condition names the few keys.
    found.add(f"{'+' if spans else ''}record.owner = ?", owner)
    found.add("(expires_at IS NULL OR expires_at > ?)", now)
    # A plus keeps SQLite from reading all of a session when it can look up the few records given by id.
    aside = "" if where.ids is None and where.source_keys is None else "+"
    for name in ("agent", "session", "collection"):
        bound = getattr(scope, name)
        if bound is not None:
            found.add(f"{aside}{name} = ?", bound)
    if set(where.states) != set(STATES):
        found.any_of("state", where.states)
    if where.left is not None:
        found.add("record.left" if where.left else "NOT record.left")
    for name in EQUAL_FIELDS:
        value = getattr(where, name)
        if value is not None:
            found.add(f"{name} = ?", value)
    found.any_of("role", where.roles)
    found.any_of("kind", where.kinds)
    found.any_of("tier", where.tiers)
    found.any_of("id", where.ids)
    found.any_of("source_key", where.source_keys)
    _under(found, where.under)
    _tags_any(found, where)
    _all_listed(found, "tags", where.tags_all or ())
    _linked(found, where)
    _ranges(found, where)
    for some in spans.values():
        found.add(_IN_SPANS, encode_json(some), owner)
    _matching(found, where, but=spans)
    return found


def apart(where: Where) -> tuple[Where, Sequence[Where]]:
    """The conditions without those that leave out what a few look-ups find, and the conditions of these look-ups.

    What a prompt shows differs at each turn; only the other conditions are worth a scan of all records, and caching.
    """
    rest: list[Condition] = []
    looked_up: list[Where] = []
    for condition in where.matching or ():
        found = [_looked_up(one) for one in condition.conditions] if isinstance(condition, NoneOf) else [None]
        some = [one for one in found if one is not None]
        looked_up += some if len(some) == len(found) else ()
        rest += () if len(some) == len(found) else [condition]
    return (replace(where, matching=tuple(rest) or None) if looked_up else where), looked_up


def _looked_up(condition: Condition) -> Where | None:
    """The same condition, if an index answers it, or finds the few records to test."""
    if isinstance(condition, AllOf) and condition.conditions:
        first, *others = condition.conditions
        found = None if any(map(touches_data, others)) else _looked_up(first)
        return None if found is None else replace(found, matching=(*(found.matching or ()), *others))
    if not isinstance(condition, FieldCondition) or condition.value is None:
        return None
    value = cast("Any", condition.value)
    match condition.field, condition.op:
        case "session", "eq":
            return replace(ANY_STATE, session=value)
        case "id", "in":
            return replace(ANY_STATE, ids=value)
        case "source_key", "in" if None not in value:
            return replace(ANY_STATE, source_keys=value)
        case _:
            return None


def needs_python(where: Where) -> bool:
    """True if Python has to decide some of the conditions."""
    return bool(where.keywords or where.data) or any(map(touches_data, where.matching or ()))


def has_few_values(where: Where) -> bool:
    """True if the conditions are translated to SQL in negligible time."""
    listed = (where.kinds, where.tags_any, where.tags_all, where.links, where.ids, where.source_keys)
    return sum(len(values or ()) for values in listed) + 10 * len(where.matching or ()) <= FEW_VALUES


def _under(found: Conditions, path: str | None) -> None:
    if path is not None:
        # Names that begin with "path/" sort before "path0"; the range lets SQLite use the index.
        found.add("collection >= ? AND collection < ?", path, path + "0")
        found.add("(collection = ? OR collection > ?)", path, path + "/")


def _tags_any(found: Conditions, where: Where) -> None:
    if where.tags_any is not None:
        found.add(f"EXISTS (SELECT 1 FROM json_each(tags) WHERE value IN {_LISTED})", _json(where.tags_any))


def _all_listed(found: Conditions, column: str, values: Collection[str]) -> None:
    if values:
        wanted = set(values)
        found.add(
            f"(SELECT count(*) FROM json_each({column}) WHERE value IN {_LISTED}) = ?", _json(wanted), len(wanted)
        )


def _linked(found: Conditions, where: Where) -> None:
    if where.links:
        ids = {link.id for link in where.links}
        found.add(f"record.key IN (SELECT record FROM link WHERE target IN {_LISTED})", _json(ids))
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


def _matching(found: Conditions, where: Where, *, but: Collection[int]) -> None:
    in_python: list[Condition] = []
    for condition in conditions_of(where):
        if id(condition) in but:
            continue
        if touches_data(condition):
            in_python.append(condition)
        else:
            found.add(*_sql(condition))
        if isinstance(condition, DataCondition):
            _spelling(found, condition)
    if where.keywords is not None and not where.keywords:
        found.add("FALSE")
    if in_python or where.keywords:
        found.in_python = PythonConditions(where.keywords or (), in_python, _field)


def _spans(condition: Condition) -> list[tuple[str, int, int]]:
    """The session, the first and the last moment of each span of time, if a condition asks for one of some sessions'.

    The few turns beside others are found so: by itself SQLite would test all records of the owner.
    """
    spans: list[tuple[str, int, int]] = []
    for one in condition.conditions if isinstance(condition, AnyOf) else ():
        match one:
            case AllOf(
                (
                    FieldCondition("session", "eq", str(session)),
                    FieldCondition("occurred_at", "between", (datetime() as first, datetime() as last)),
                )
            ):
                spans.append((session, micros(first), micros(last)))
            case _:
                return []
    return spans


def touches_data(condition: Condition) -> bool:
    """True if a condition is on `data`, or is a group that contains such a condition."""
    if isinstance(condition, GROUPS):
        return any(map(touches_data, condition.conditions))
    return isinstance(condition, DataCondition)


def _spelling(found: Conditions, condition: DataCondition) -> None:
    """Add a cheap first test: what the stored JSON must contain. Numbers have several spellings and are left out."""
    name, value = condition.path[-1], condition.value
    if condition.op == "eq" and isinstance(name, str):
        spelling = encode_json(value) if value is None or isinstance(value, str | bool) else ""
        found.add("instr(data, ?)", f"{encode_json(name)}:{spelling}")


def _sql(condition: Condition) -> tuple[str, *tuple[Parameter, ...]]:
    """A condition on fields as a fragment that is true or false, never NULL, and its parameters."""
    if isinstance(condition, FieldCondition):
        return _field(condition)
    assert not isinstance(condition, DataCondition)  # noqa: S101  (for type checkers: Python decides those)
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
    if op == "starts_with":  # the first comparison lets SQLite use the index
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
