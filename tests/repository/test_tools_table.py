"""The table of tools has every tool, names operations that exist, and stands on its page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from memory_core import BoundMemory
from tests.repository.tools import ROWS, SURFACES, surfaces, table

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"


def test_every_tool_of_every_framework_does_one_operation() -> None:
    for surface, tools in surfaces().items():
        assert Counter(name for row in ROWS for name in getattr(row, surface)) == Counter(list(tools)), surface
    assert all(callable(getattr(BoundMemory, row.operation)) for row in ROWS)
    assert set(SURFACES) == set(surfaces())


def test_the_page_shows_the_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), (
        "put what `python -m tests.repository.tools` prints into the page"
    )
