"""A day or a time of day is taken from `local_time.py`, so that none is that of another place than the person's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = frozenset(("date", "hour", "weekday", "isoweekday", "isocalendar", "strftime", "timetuple"))
ALLOWED = {
    "memory_core/retrieval/time_expressions.py": {"weekday"},  # of a day that it is given
    "memory_core/lifecycle/deriving.py": {"weekday"},  # of a day that it is given
    "memory_core/values/times.py": {"date"},  # what is today
    "memory_core/app/showing.py": {"%"},  # shows any time beside its offset
    "adapters/memory_spade/files/notes.py": {"%"},  # the name of a file
}
FILES = [
    str(path.relative_to(ROOT))
    for folder in ("memory_core", "adapters")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "testing" not in path.parts
]


def _taken(tree: ast.AST) -> Iterator[str]:
    """The parts that are taken of a time that does not come from `local_time` directly."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PARTS and not _is_local(node.value):
            yield node.attr
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None and not _is_local(node.value):
            said = ast.unparse(node.format_spec)
            if any(f"%{letter}" in said for letter in "aAbBdHIjmMSUVWyY"):
                yield "%"


def _taken_in(name: str) -> set[str]:
    return set(_taken(ast.parse((ROOT / name).read_text(encoding="utf-8"))))


def _is_local(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "local_time"


def test_no_day_is_that_of_another_place() -> None:
    found = {name: _taken_in(name) - ALLOWED.get(name, set()) for name in FILES}
    wrong = {name: parts for name, parts in found.items() if parts}
    assert wrong == {}, "take the day and the time of day of a record from memory_core/local_time.py"


def test_every_exception_is_needed() -> None:
    assert {name: _taken_in(name) for name in ALLOWED} == ALLOWED


@pytest.mark.parametrize(
    "code",
    ["record.occurred_at.date()", "record.occurred_at.hour", "f'{record.occurred_at:%Y-%m-%d}'", "at.strftime('x')"],
)
def test_the_rule_sees_what_it_forbids(code: str) -> None:
    assert list(_taken(ast.parse(code)))
