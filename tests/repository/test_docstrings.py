"""The rule that a docstring names its noun first: neither it nor its word on an argument is a clause that begins with
What, How or Those."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("memory_core", "adapters", "examples", "tests")
CLAUSE: Final = re.compile(
    r"(?:\A\s*|^\s+\w+: )(What|Whether|How|Those|Where|Which|When|Who|Whom|Whose|Why)\b", re.MULTILINE
)
"""The beginning of a clause that leaves it open what is described: "Whether it is open" is "True if it is open", "How
many rows" is "The number of rows", "What it finds" is "The records that it finds"."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that stand alone, each with its line: those of classes, functions and values too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield node.lineno, text
            case _:
                pass


def test_no_docstring_begins_with_a_clause() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {clause.group().strip()}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(path)
        for clause in CLAUSE.finditer(text)
    ]
    assert found == []
