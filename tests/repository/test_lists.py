"""The pages with a list of names have every name that the code knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import pytest

from memory_core.app.formats import sources
from memory_core.app.serve.shapes import PARTS
from memory_core.app.settings import NAMES
from memory_core.records.fields import FIELDS
from memory_mcp.tools import OFFERS
from tests.repository.architecture import ROOT

LISTS: Final[Mapping[str, Collection[str]]] = {
    "cli": sources(),
    "embedding": NAMES,
    "mcp": OFFERS,
    "reference/record": [field.name for field in FIELDS],
    "retrieval": PARTS,
}


@pytest.mark.parametrize("page", LISTS)
def test_a_list_of_a_page_has_every_name(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert [name for name in LISTS[page] if re.search(f'[`"]{name}', text) is None] == []
