"""Halves of characters in the JSON of a client."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.half_characters import without_halves

TEXTS = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from('\ud83d\ude00\\u"\nd8'), max_size=30)


@given(text=TEXTS)
def test_halves_of_characters_are_question_marks_and_nothing_else_changes(text: str) -> None:
    written = json.dumps(text).encode()
    mended = without_halves(written)
    assert len(mended) == len(written)
    pairs_joined = json.loads(written)
    assert json.loads(mended) == "".join("?" if "\ud800" <= one <= "\udfff" else one for one in pairs_joined)
