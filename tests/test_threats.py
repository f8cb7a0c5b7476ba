"""Every test that the threat model names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "threats.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


def test_every_line_names_a_test_or_says_that_there_is_none() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| threat")]
    assert len(rows) > 25
    assert all(re.search(r"\.py::\w+` \|$", row) or row.endswith("not tested |") for row in rows)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    path = ROOT / (file if file.startswith("tests/") else f"memory_core/{file}")
    assert re.search(rf"^\s*(async )?def {name}\(", path.read_text(), re.MULTILINE)
