"""The reference: a page for each operation, which names every argument and shows the operation at work."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memory_core
from memory_core import BoundMemory, Memory, Operator, testing

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE_OF = {
    "open": "memory",
    "close": "memory",
    "ready": None,
    "add_one": None,
    "list_page": None,
    "touch_later": None,
    "touched": None,
    "finish_first": None,
    "operator": "operator",
}
"""Operations that are told on the page of another one; `ready`, `add_one`, `list_page`, `touch_later` and `touched` are
for handles, and `finish_first` for adapters."""


def operations() -> dict[str, tuple[str, Callable[..., Any]]]:
    """By name the page it is on and the function."""
    found: dict[str, tuple[str, Callable[..., Any]]] = {}
    for kind in (Memory, BoundMemory, Operator):
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                page = "operator" if kind is Operator else PAGE_OF.get(name, name)
                if page is not None:
                    found[f"{kind.__name__}.{name}"] = (page, function)
    return found


@pytest.mark.parametrize("operation", operations())
def test_every_operation_has_a_page_that_names_its_arguments_and_shows_it(operation: str) -> None:
    page, function = operations()[operation]
    text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
    prose = re.sub(r"(?s)```.*?```", "", text)
    for name in [name for name in inspect.signature(function).parameters if name not in {"self", "handle"}]:
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", prose), f"{page}.md does not say what {name!r} is"
    name = operation.partition(".")[2]
    shown = {"open": "with Memory(", "close": ".close()", "bind": ".bind(", "stats": "stats()"}.get(name, f".{name}(")
    assert shown in text


def test_every_operation_of_a_store_is_called_by_its_contract() -> None:
    contract = "".join(path.read_text(encoding="utf-8") for path in Path(testing.__file__).parent.glob("*.py"))
    names = {name.partition(".")[2] for name in operations() if not name.startswith("Memory.")}
    assert {name for name in names if not re.search(rf"\.{name}\b", contract)} == set()


@pytest.mark.parametrize("name", sorted({*memory_core.__all__, *memory_core._AT_FIRST_USE}))
def test_every_public_name_is_on_a_page(name: str) -> None:
    prose = "".join(re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8")) for page in REFERENCE.glob("*.md"))
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", prose)


def test_every_page_is_in_the_index() -> None:
    index = (REFERENCE / "README.md").read_text(encoding="utf-8")
    assert {path.stem for path in REFERENCE.glob("*.md")} - {"README"} == set(re.findall(r"\]\((\w+)\.md\)", index))
