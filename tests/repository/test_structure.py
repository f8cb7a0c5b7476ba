"""The shape of the packages: what imports what, and what is said twice."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from tests.repository.architecture import BLOCK, PAGE, ROOT, drawing, imports, modules

SHARED_LINES = 10
"""So many lines may stand in two places, import lists left out."""

MODULES = modules()


def test_no_import_goes_in_a_circle() -> None:
    graph = {name: set(imports(path, MODULES)) - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@pytest.mark.slow
def test_no_import_hides_in_a_string() -> None:
    """Else neither the test above nor import-linter sees it. Only the doors load names at first use."""
    hidden = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for name, path in MODULES.items()
        if name.startswith("memory_core.")
        and name not in {"memory_core.adapting", "memory_core.formats", "memory_core.storing"}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value
        if node.value in MODULES
    }
    assert hidden == set()


@pytest.mark.parametrize("door", ["adapting", "formats", "storing"])
def test_the_docstring_of_a_door_groups_all_its_names(door: str) -> None:
    module = import_module(f"memory_core.{door}")
    assert set(module.__all__) == set(re.findall(r"`(\w+)`", module.__doc__ or "")) - {"memory_core"}


def test_the_picture_of_the_architecture_is_what_the_imports_are() -> None:
    found = BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found.group() == drawing(), "draw it again: python -m tests.repository.architecture"


def test_the_page_of_the_architecture_names_each_room() -> None:
    rooms = [*(ROOT / "memory_core").glob("[a-z]*.py"), *(ROOT / "memory_core").glob("[a-z]*/")]
    text = PAGE.read_text(encoding="utf-8")
    assert [each.name for each in rooms if f"`{each.name}" not in text and f"/{each.name}`" not in text] == []


def test_each_file_that_the_page_of_the_architecture_names_is_there() -> None:
    files = [
        path.as_posix()
        for folder in ("memory_core", "adapters", "tests", ".ci")
        for path in ROOT.glob(f"{folder}/**/*.*")
    ]
    named = re.findall(r"`((?:[\w.-]+/)*\w+\.(?:py|json|yml))`", PAGE.read_text(encoding="utf-8"))
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


def code_lines(path: Path) -> list[tuple[int, str]]:
    """Lines with something on them by number, without indentation, imports and signatures."""
    source = path.read_text(encoding="utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) and node.end_lineno is not None:
            left_out.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out.update(range(node.lineno, node.body[0].lineno))
    return [
        (number, line.strip())
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and number not in left_out
    ]


@pytest.mark.slow
def test_nothing_stands_in_two_places() -> None:
    """Not even among the adapters: what two of them need is in `memory_core.adapting`."""
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in MODULES.values():
        lines = code_lines(path)
        for start in range(len(lines) - SHARED_LINES):
            window = lines[start : start + SHARED_LINES + 1]
            text = tuple(line for _, line in window)
            if sum(len(re.findall(r"\w+", line)) for line in text) > 2 * SHARED_LINES:  # and not brackets alone
                places[text].append(f"{path.relative_to(ROOT)}:{window[0][0]}")
    repeated = sorted({" and ".join(found) for found in places.values() if len(found) > 1})
    assert repeated == []
