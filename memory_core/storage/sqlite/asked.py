"""What SQLite cannot decide exactly: keywords, and conditions on `data`, of whose digits, NUL and escaped keys it loses
some."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from memory_core.encoding import encode_json
from memory_core.storage.sqlite.damage import explaining
from memory_core.where.conditions import GROUPS, AllOf, Condition, DataCondition, FieldCondition
from memory_core.where.meaning import Test, keyword_test, matcher

Parameter = str | int | float | None
Row = tuple[Any, ...]
Fragment = tuple[str, *tuple[Parameter, ...]]


class _Held(NamedTuple):
    """What stands for a record."""

    data: object
    fields: Sequence[object]
    """Which conditions on fields hold."""


class Asked:
    """Keywords and conditions that Python decides, given a row of `columns`.

    Args:
        keywords: One of them has to be in the text; none, no condition.
        conditions: Those on `data`, and groups with one of them.
        on_field: A condition on a field in SQL, for those within the groups.
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
        """By the identity of a condition, its place among the columns of fields."""
        self._fragments: list[str] = []
        self.parameters: list[Parameter] = []
        """Of `columns`."""
        described = encode_json(self._described(self._condition))
        self.columns = ", ".join(["text" if keywords else "NULL", "data" if conditions else "NULL", *self._fragments])
        self.name: Hashable = (self._keywords, described, self.columns, *self.parameters)
        """Equal for equal conditions."""

    def test(self) -> Callable[[Row], bool]:
        """What decides, made once for many rows."""
        keywords = keyword_test(self._keywords) if self._keywords else None
        conditions = matcher(self._condition, self._field_test) if self._condition.conditions else None

        def test(row: Row) -> bool:
            text, data, *fields = row
            with explaining("the text or the data of a record"):
                if conditions is not None and not conditions(_Held(json.loads(data), fields)):
                    return False
                return keywords is None or keywords(text)

        return test

    def _field_test(self, condition: FieldCondition) -> Test:
        holds = itemgetter(self._fields[id(condition)])
        return lambda held: bool(holds(held.fields))

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
